/** What happens in async mode, told to operators. Its metrics are there only where a queue is configured. */
import type { Logger } from 'pino';
import { Counter, Gauge, type Registry } from 'prom-client';
import { shortKey } from '../core/leads.ts';
import type { Events, JobReport } from '../core/ports.ts';
import type { Enqueued, QueueDepth } from '../core/queue.ts';
import { keys } from './labels.ts';
import { rounded } from './log.ts';
import type { RouteLabels } from './route-series.ts';

type QueueEvents = Pick<Events, 'enqueued' | 'jobEnded' | 'queueUp' | 'queueDurable' | 'queueDepth' | 'jobStalled'> & {
  /** These are the routes from now on. */
  routes(now: readonly RouteLabels[]): void;
};

const ENQUEUED: Record<Enqueued, true> = { queued: true, failed: true, unknown: true };
const RESULTS = { delivered: true, duplicate: true, waited: true, failed: true, dead: true } as const;
const STATES: Record<Exclude<keyof QueueDepth, 'oldestMs'>, true> = {
  waiting: true,
  delayed: true,
  active: true,
  dead: true,
};

/** `depth`: the gauge that counts what waits for the application as well. */
export function queueEvents(registry: Registry, depth: Gauge<'queue' | 'state'>, log: Logger): QueueEvents {
  const registers = [registry];
  const enqueues = new Counter({
    ...{ name: 'hookonce_enqueues_total', help: 'Deliveries that were to be put in the queue, by result.', registers },
    labelNames: ['route', 'result'],
  });
  const tries = new Counter({
    ...{
      name: 'hookonce_queue_attempts_total',
      help: 'Tries of jobs of the queue, by what became of them.',
      registers,
    },
    labelNames: ['route', 'result'],
  });
  const stalled = new Counter({
    ...{
      name: 'hookonce_queue_stalled_total',
      help: 'Jobs whose worker fell silent, and that another took.',
      registers,
    },
  });
  const up = new Gauge({
    ...{ name: 'hookonce_queue_up', help: '1 while the queue is connected and jobs are taken.', registers },
  });
  const durable = new Gauge({
    ...{
      name: 'hookonce_queue_durable',
      help: '1 when the queue keeps what it acknowledged through a power cut.',
      registers,
    },
  });
  const oldest = new Gauge({
    ...{
      name: 'hookonce_queue_oldest_seconds',
      help: 'Age of the oldest event that waits in the queue, since it was accepted.',
      registers,
    },
  });
  for (const state of keys(STATES)) depth.set({ queue: 'async', state }, 0);
  let shown: readonly string[] = [];

  return {
    routes(now) {
      const next = now.filter((route) => route.async).map(({ name }) => name);
      for (const route of next) {
        for (const result of keys(ENQUEUED)) enqueues.inc({ route, result }, 0);
        for (const result of keys(RESULTS)) tries.inc({ route, result }, 0);
      }
      for (const route of shown.filter((name) => !next.includes(name))) {
        for (const result of keys(ENQUEUED)) enqueues.remove({ route, result });
        for (const result of keys(RESULTS)) tries.remove({ route, result });
      }
      shown = next;
    },
    enqueued: (route, result) => enqueues.inc({ route, result }),
    jobEnded(report) {
      // Jobs of routes that are not configured any more have no series of their own.
      const route = shown.includes(report.route) ? report.route : 'unmatched';
      tries.inc({ route, result: resultOf(report) });
      const { fate } = report;
      const level = fate.kind === 'dead' ? 'error' : fate.kind === 'retry' ? 'warn' : 'info';
      log[fate.kind === 'wait' ? 'debug' : level](jobLine(report), 'job');
    },
    queueUp(is, details = {}) {
      up.set(is ? 1 : 0);
      if (is) log.info(details, 'the queue is up');
      else log.warn(details, 'the queue is down: deliveries in async mode are answered 503 until it is back');
    },
    queueDurable(is, why) {
      durable.set(is ? 1 : 0);
      if (!is) log.warn({ why }, 'the queue may lose what it has acknowledged when it loses its power');
    },
    queueDepth({ oldestMs, ...states }) {
      for (const state of keys(STATES)) depth.set({ queue: 'async', state }, states[state]);
      oldest.set(oldestMs / 1000);
    },
    jobStalled(job) {
      stalled.inc();
      log.warn({ job }, 'the worker of a job fell silent; another takes it');
    },
  };
}

/** Where there is no queue nothing of it happens. */
export const noQueueEvents: QueueEvents = {
  routes: () => undefined,
  enqueued: () => undefined,
  jobEnded: () => undefined,
  queueUp: () => undefined,
  queueDurable: () => undefined,
  queueDepth: () => undefined,
  jobStalled: () => undefined,
};

function resultOf({ fate, outcome }: JobReport): keyof typeof RESULTS {
  switch (fate.kind) {
    case 'done':
      return outcome === 'duplicate' ? 'duplicate' : 'delivered';
    case 'wait':
      return 'waited';
    case 'retry':
      return 'failed';
    case 'dead':
      return 'dead';
  }
}

function jobLine({ key, fate, totalMs, claimMs, upstreamMs, waitedMs, ...rest }: JobReport): Record<string, unknown> {
  const failure = 'attempt' in fate ? { status: fate.attempt.status, message: fate.attempt.message } : {};
  return {
    ...{ ...rest, fate: fate.kind, ...failure, ...('ms' in fate && { againMs: fate.ms }) },
    ...(key !== undefined && { key: shortKey(key) }),
    ...{ totalMs: rounded(totalMs), waitedMs: Math.round(waitedMs) },
    ...(claimMs !== undefined && { claimMs: rounded(claimMs) }),
    ...(upstreamMs !== undefined && { upstreamMs: rounded(upstreamMs) }),
  };
}
