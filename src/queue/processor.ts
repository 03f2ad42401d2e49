/** One try of a job: what BullMQ hands over, and how it is told the job's fate. */
import { DelayedError, UnrecoverableError, type Job as BullJob, type Processor } from 'bullmq';
import type { Clock } from '../core/ports.ts';
import type { AttemptRecord, Fate, Job } from '../core/queue.ts';
import { fromData, type JobData } from './job-data.ts';

/** The job failed, and comes again after `ms`. */
class Again extends Error {
  readonly ms: number;

  constructor(message: string, ms: number) {
    super(message);
    this.ms = ms;
  }
}

/** After a failure of BullMQ's own, such as a job that was done and could not be taken out. */
const OWN_FAILURE_MS = 1000;

export function processor(handle: (job: Job) => Promise<Fate>, clock: Clock): Processor<JobData, void> {
  return async (bull, token) => {
    const fate = await handle(jobOf(bull));
    switch (fate.kind) {
      case 'done':
        return;
      case 'wait':
        await bull.moveToDelayed(clock.wall() + fate.ms, token);
        throw new DelayedError();
      case 'retry':
        await remember(bull, fate.attempt);
        throw new Again(fate.attempt.message, fate.ms);
      case 'dead':
        await remember(bull, fate.attempt);
        throw new UnrecoverableError(fate.attempt.message);
    }
  };
}

/** Whole milliseconds: the PostgreSQL backend takes no fractions. */
export function backoffOf(clock: Clock) {
  return (_attempts: number, _type?: string, error?: Error): number =>
    Math.round(error instanceof Again ? error.ms : OWN_FAILURE_MS * (1 + clock.random()));
}

function jobOf(bull: BullJob<JobData>): Job {
  const { id, data, attemptsMade } = bull;
  return { id: id!, delivery: fromData(data), attempt: attemptsMade + 1, replay: data.replay };
}

async function remember(bull: BullJob<JobData>, attempt: AttemptRecord): Promise<void> {
  await bull.log(JSON.stringify(attempt));
}
