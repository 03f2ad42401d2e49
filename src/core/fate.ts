/**
 * What becomes of a job, by what became of its delivery: pure.
 *
 * | outcome                                     | job                                                              |
 * | delivered, duplicate, stale                 | done                                                             |
 * | in progress, no quorum, no place to go      | waits; no attempt is used                                        |
 * | refused, unreachable, uncertain             | again after a pause, or after `Retry-After` where that is longer |
 * | the same for the last time, or by a status that is not to be tried again | dead                                |
 * | duplicate of what was done before an operator asked for it again         | dead: a replay is never swallowed   |
 */
import { pauseAfter, type Backoff } from './backoff.ts';
import { header, type AppReply, type Outcome } from './delivery.ts';
import { httpDate } from './http-date.ts';
import { utc } from './in-words.ts';
import type { AttemptRecord, Fate, Job } from './queue.ts';

/** How failures are dealt with. */
export interface RetryRules {
  /** In all; the last failure makes a dead letter. */
  readonly attempts: number;
  readonly backoff: Backoff;
  /** Statuses of the application that make a dead letter at once. */
  readonly nonRetryable: readonly number[];
}

/** Where and when the outcome came. */
export interface Moment {
  readonly wallMs: number;
  /** The attempt took this long. */
  readonly tookMs: number;
  /** Uniform in [0, 1). */
  readonly random: number;
}

/** An application may ask for more patience than the backoff has, but no more than this. */
const LONGEST_RETRY_AFTER_MS = 86_400_000;
/** Another look at what is held or missing: soon, but not at once. */
const LOOK_AGAIN_MS = 500;
const LONGEST_LOOK_MS = 60_000;

export function fateOf(outcome: Outcome, job: Job, rules: RetryRules, moment: Moment): Fate {
  switch (outcome.kind) {
    case 'delivered':
    case 'accepted':
    case 'stale':
    case 'handshake':
      return { kind: 'done' };
    case 'duplicate': {
      const { replay } = job;
      if (replay === undefined || replay.again !== '' || outcome.done.wallMs >= replay.wallMs) return { kind: 'done' };
      const message = `the event was done before the replay, at ${utc(outcome.done.wallMs)}; to have it done once more, force it`;
      return { kind: 'dead', attempt: record(outcome, job, moment, message, outcome.done.status) };
    }
    case 'in-progress':
      return wait(outcome.retryAfterMs, moment);
    case 'unavailable':
    case 'overloaded':
      return wait(0, moment);
    case 'refused':
      return failed(refusal(outcome, job, moment), rules, moment, outcome.reply);
    case 'unreachable':
      return failed(record(outcome, job, moment, `not reached: ${outcome.message}`), rules, moment);
    case 'uncertain':
      return failed(record(outcome, job, moment, `no answer: ${outcome.how}`), rules, moment);
    case 'rejected':
      return { kind: 'dead', attempt: record(outcome, job, moment, outcome.message) };
  }
}

/** A failure that nobody foresaw. */
export function fateOfError(message: string, job: Job, rules: RetryRules, moment: Moment): Fate {
  return failed(record({ kind: 'error' }, job, moment, message), rules, moment);
}

function refusal(outcome: Outcome & { kind: 'refused' }, job: Job, moment: Moment): AttemptRecord {
  const { status } = outcome.reply;
  return record(outcome, job, moment, `answered ${status}`, status);
}

function failed(attempt: AttemptRecord, rules: RetryRules, moment: Moment, reply?: AppReply): Fate {
  const hopeless = reply !== undefined && rules.nonRetryable.includes(reply.status);
  if (hopeless || attempt.attempt >= rules.attempts) return { kind: 'dead', attempt };
  const pauseMs = pauseAfter(attempt.attempt, rules.backoff, moment.random);
  return { kind: 'retry', ms: Math.max(pauseMs, reply ? retryAfterMs(reply, moment.wallMs) : 0), attempt };
}

/** What the application asks for by `Retry-After`, in seconds or as a date; 0 without. */
function retryAfterMs(reply: AppReply, wallMs: number): number {
  const text = header(reply.headers, 'retry-after') ?? '';
  const ms = /^\d{1,10}$/.test(text) ? Number(text) * 1000 : (httpDate(text) ?? wallMs) - wallMs;
  return Math.min(LONGEST_RETRY_AFTER_MS, Math.max(0, Math.ceil(ms)));
}

/** `ms`: for which it is held, as far as known. */
function wait(ms: number, { random }: Moment): Fate {
  return { kind: 'wait', ms: Math.round(Math.min(LONGEST_LOOK_MS, Math.max(0, ms)) + LOOK_AGAIN_MS * (0.2 + random)) };
}

function record(
  { kind }: { readonly kind: AttemptRecord['outcome'] },
  job: Job,
  { wallMs, tookMs }: Moment,
  message: string,
  status?: number,
): AttemptRecord {
  const line = { wallMs, attempt: job.attempt, outcome: kind, message, tookMs: Math.round(tookMs) };
  return status === undefined ? line : { ...line, status };
}
