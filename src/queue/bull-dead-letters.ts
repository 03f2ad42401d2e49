/** Dead letters as BullMQ keeps them: failed jobs, with their log as the history. */
import type { Job as BullJob } from 'bullmq';
import type { DeadLetter, DeadLetters } from '../core/dead-letters.ts';
import type { Clock } from '../core/ports.ts';
import type { AttemptRecord } from '../core/queue.ts';
import type { BullQueue } from './backend.ts';
import { fromData, type JobData } from './job-data.ts';

export class BullDeadLetters implements DeadLetters {
  readonly #find: () => BullQueue | undefined;
  readonly #clock: Clock;

  /** `queue` undefined: it is not open. Every method rejects then, and when the queue does not answer. */
  constructor(queue: () => BullQueue | undefined, clock: Clock) {
    this.#find = queue;
    this.#clock = clock;
  }

  async ids(): Promise<readonly string[]> {
    return await this.#answered(this.#queue().getRanges(['failed'], 0, -1, true));
  }

  async get(id: string): Promise<DeadLetter | undefined> {
    return await this.#answered(this.#get(id));
  }

  async replay(id: string, again: string): Promise<'replayed' | 'gone'> {
    return await this.#answered(this.#replay(id, again));
  }

  async discard(id: string): Promise<'discarded' | 'gone'> {
    return await this.#answered(this.#discard(id));
  }

  async #get(id: string): Promise<DeadLetter | undefined> {
    const job = await this.#dead(id);
    if (!job) return undefined;
    const { logs } = await this.#queue().getJobLogs(id);
    const { data, attemptsMade, failedReason, finishedOn, timestamp } = job;
    return {
      id,
      delivery: fromData(data),
      history: logs.flatMap((line) => recordOf(line) ?? []),
      attempts: attemptsMade,
      lastError: failedReason ?? '',
      diedWallMs: finishedOn ?? timestamp,
      replays: data.replays ?? 0,
    };
  }

  async #replay(id: string, again: string): Promise<'replayed' | 'gone'> {
    const job = await this.#dead(id);
    if (!job) return 'gone';
    try {
      const replay = { wallMs: this.#clock.wall(), again };
      await job.updateData({ ...job.data, replay, replays: (job.data.replays ?? 0) + 1 });
      await job.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true });
      return 'replayed';
    } catch (error) {
      return await this.#goneOr(id, error);
    }
  }

  async #discard(id: string): Promise<'discarded' | 'gone'> {
    const job = await this.#dead(id);
    if (!job) return 'gone';
    try {
      await job.remove();
      return 'discarded';
    } catch (error) {
      return await this.#goneOr(id, error);
    }
  }

  #queue(): BullQueue {
    const queue = this.#find();
    if (!queue) throw new Error('the queue is not open');
    return queue;
  }

  async #dead(id: string): Promise<BullJob<JobData> | undefined> {
    const job = await this.#queue().getJob(id);
    return job && (await job.isFailed()) ? job : undefined;
  }

  async #answered<T>(asked: Promise<T>): Promise<T> {
    const late = Promise.withResolvers<never>();
    const cancel = this.#clock.timer(ANSWER_MS, () => late.reject(new Error('the queue does not answer')));
    try {
      return await Promise.race([asked, late.promise]);
    } finally {
      cancel();
    }
  }

  /** Somebody else was faster, or something is wrong indeed. */
  async #goneOr(id: string, error: unknown): Promise<'gone'> {
    if (await this.#dead(id)) throw error;
    return 'gone';
  }
}

/** A server that is silent keeps nobody waiting for longer. */
const ANSWER_MS = 10_000;

function recordOf(line: string): AttemptRecord | undefined {
  try {
    return JSON.parse(line) as AttemptRecord;
  } catch {
    return undefined;
  }
}
