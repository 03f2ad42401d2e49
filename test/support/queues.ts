/** Queues over real servers, as a gateway has them, without the gateway. */
import { systemClock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import type { BullDeadLetters } from '../../src/queue/bull-dead-letters.ts';
import { JobQueue } from '../../src/queue/queue.ts';
import type { QueueOptions, QueueTarget } from '../../src/queue/target.ts';
import { recordedEvents, type RecordedEvents } from './recorded-events.ts';

export interface OpenQueue extends AsyncDisposable {
  readonly queue: JobQueue;
  readonly deadLetters: BullDeadLetters;
  readonly events: RecordedEvents;
}

/** Patient enough for a busy machine. */
const defaults: Omit<QueueOptions, 'target'> = {
  service: 'tests',
  timeoutMs: 5_000,
  concurrency: 16,
  lockMs: 20_000,
  deadRetentionMs: 86_400_000,
};

/** Resolves when it is up. */
export async function openQueue(target: QueueTarget, change: Partial<QueueOptions> = {}): Promise<OpenQueue> {
  const opened = queueOn(target, change);
  await until(systemClock, 'a queue that is up', async () =>
    opened.events.of('queueUp').some(([up]) => up) ? true : undefined,
  );
  return opened;
}

/** Does not wait for the server. */
export function queueOn(target: QueueTarget, change: Partial<QueueOptions> = {}): OpenQueue {
  const events = recordedEvents();
  const queue = new JobQueue({ ...defaults, target, ...change }, systemClock, events);
  const { deadLetters } = queue;
  return { queue, deadLetters, events, [Symbol.asyncDispose]: async () => await queue[Symbol.asyncDispose]() };
}

export function redisTarget(port: number): QueueTarget {
  return { ...nowhere, kind: 'redis', name: `127.0.0.1:${port}`, port, database: '' };
}

export function postgresTarget(port: number, database = 'postgres'): QueueTarget {
  return { ...nowhere, kind: 'postgres', name: `127.0.0.1:${port}`, port, username: 'hookonce', database };
}

const nowhere = { host: '127.0.0.1', username: undefined, password: undefined, tls: undefined } as const;
