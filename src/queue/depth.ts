/** How the queue stands, told every two seconds; and what is over age, taken out. */
import type { Clock, Events } from '../core/ports.ts';
import type { BullQueue } from './backend.ts';
import { acceptedAt } from './job-data.ts';

const EVERY_MS = 2000;
/** Longer than that without an answer, and the queue counts as down. */
const ANSWER_MS = 5000;
const DURABILITY_EVERY_MS = 60_000;
const CLEAN_EVERY_MS = 600_000;
/** Removed in one go: about as long as one script may hold up the server. */
const CLEANED_AT_ONCE = 500;
/** Ids that are looked at in each state, for the oldest. */
const LOOKED_AT = 1000;

export interface Telling {
  readonly queue: BullQueue;
  readonly doubts: () => Promise<string | undefined>;
  /** Called before each look. */
  readonly tend: () => void;
  readonly deadRetentionMs: number;
  readonly up: (is: boolean, error?: unknown) => void;
  readonly clock: Clock;
  readonly events: Pick<Events, 'queueDurable' | 'queueDepth'>;
  readonly signal: AbortSignal;
}

/** Until `signal` aborts. Never rejects. */
export async function tell({
  queue,
  doubts,
  tend,
  deadRetentionMs,
  up,
  clock,
  events,
  signal,
}: Telling): Promise<void> {
  let wasUp: boolean | undefined;
  let told: string | undefined;
  let durabilityDueMs = 0;
  let cleaningDueMs = 0;
  while (!signal.aborted) {
    tend();
    try {
      await within(clock, signal, async () => {
        await tellDepth(queue, clock, events);
        if (clock.now() >= durabilityDueMs) {
          const why = (await doubts()) ?? '';
          if (told !== why) events.queueDurable(why === '', why);
          told = why;
          durabilityDueMs = clock.now() + DURABILITY_EVERY_MS;
        }
        if (clock.now() >= cleaningDueMs) {
          const removed = await queue.clean(deadRetentionMs, CLEANED_AT_ONCE, 'failed');
          if (removed.length < CLEANED_AT_ONCE) cleaningDueMs = clock.now() + CLEAN_EVERY_MS;
        }
      });
      if (wasUp !== true) up(true);
      wasUp = true;
    } catch (error) {
      if (wasUp !== false && !signal.aborted) up(false, error);
      wasUp = false;
    }
    await clock.sleep(EVERY_MS, signal);
  }
}

async function tellDepth(queue: BullQueue, clock: Clock, events: Telling['events']): Promise<void> {
  const counts = await queue.getJobCounts('waiting', 'delayed', 'active', 'failed');
  const { waiting = 0, delayed = 0, active = 0, failed: dead = 0 } = counts;
  const oldestMs = waiting + delayed + active === 0 ? 0 : await oldest(queue, clock.wall());
  events.queueDepth({ waiting, delayed, active, dead, oldestMs });
}

/** Of more jobs than are looked at in a state, those that come next: the first come of those that wait, the next due of the delayed. */
async function oldest(queue: BullQueue, wallMs: number): Promise<number> {
  const ids = await queue.getRanges(['waiting', 'delayed', 'active'], 0, LOOKED_AT - 1, true);
  const ages = ids.map((id) => wallMs - (acceptedAt(id) ?? wallMs));
  return Math.max(0, ...ages);
}

async function within(clock: Clock, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>();
  const giveUp = (): void => late.reject(new Error('no answer'));
  const cancel = clock.timer(ANSWER_MS, giveUp);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    const working = work();
    // Should it be late, nobody hears how it ended.
    working.catch(() => undefined);
    await Promise.race([working, late.promise]);
  } finally {
    cancel();
    signal.removeEventListener('abort', giveUp);
  }
}
