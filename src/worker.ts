/** Takes from the queue and hands to the application: one try of a job, from its route to its fate, and what is reported of it. */
import type { Outcome, Trail } from './core/delivery.ts';
import { fateOf, fateOfError, type Moment, type RetryRules } from './core/fate.ts';
import type { Gate } from './core/handle.ts';
import type { Memory } from './core/memory.ts';
import type { Claims, DeliveryTrace, Tracing, VersionStore } from './core/ports.ts';
import type { Fate, Job } from './core/queue.ts';
import type { Route } from './core/route.ts';
import { work } from './core/work.ts';

export interface WorkRules extends RetryRules {
  /** Dead letters are kept for this long; so is what is known of the work on their events. */
  readonly deadRetentionMs: number;
}

/**
 * `routes`: as they are configured now; `memory`: for bodies, together with those of deliveries; `claims`: for the work on a route; `tracing`: undefined where traces are not
 * exported. What it returns never rejects.
 */
export function createWorker(
  gate: Gate,
  routes: () => readonly Route[],
  rules: WorkRules,
  memory: Memory,
  claims: (route: Route) => Claims & VersionStore,
  tracing: Tracing | undefined,
): (job: Job) => Promise<Fate> {
  const { clock, events } = gate;

  /** To the end of the try. */
  const attempt = async (job: Job, route: Route, trace: DeliveryTrace | undefined, trail: Trail) => {
    const share = memory.open();
    try {
      // What went wrong before may become a dead letter, of which somebody may ask whether it was done in the end.
      const longestMs = Math.max(route.retentionMs, rules.deadRetentionMs);
      const workMs = job.attempt > 1 ? longestMs : route.retentionMs;
      // A dead letter may be replayed as late, and must still be found older than what was applied since.
      const kept = { workMs, versionsMs: longestMs };
      const guarded = claims(route);
      const own = { ...gate, claims: guarded, versions: guarded };
      return await work(trace?.follow(own) ?? own, route, job, share, kept, trail);
    } catch (error) {
      events.warn('a job failed unexpectedly', { route: route.name, job: job.id, error });
      return undefined;
    } finally {
      share.release();
    }
  };

  return async (job) => {
    const begunMs = clock.now();
    const { delivery } = job;
    const route = routes().find(({ name }) => name === delivery.route);
    const trace = route && traceOf(job, route, tracing);
    const traceId = trace?.traceId ?? delivery.traceId;
    const trail: Trail = traceId === undefined ? {} : { traceId };
    const outcome = route && (await attempt(job, route, trace, trail));

    const totalMs = clock.now() - begunMs;
    const moment: Moment = { wallMs: clock.wall(), tookMs: totalMs, random: clock.random() };
    // Another gateway may have the route already, or still: configurations are rolled out one by one.
    const fate = outcome
      ? fateOf(outcome, job, rules, moment)
      : fateOfError(route ? 'internal error' : `there is no route ${delivery.route}`, job, rules, moment);
    const waitedMs = Math.max(0, moment.wallMs - delivery.acceptedWallMs);
    const kind = outcome?.kind ?? 'error';
    events.jobEnded({
      ...{ route: delivery.route, job: job.id, outcome: kind, fate, queueAttempt: job.attempt, waitedMs, totalMs },
      ...trail,
    });
    if (outcome)
      trace?.end(
        { route: delivery.route, outcome: outcome.kind, status: statusOf(outcome), totalMs, ...trail },
        outcome.kind === 'duplicate' ? outcome.done : undefined,
      );
    else trace?.end({ route: delivery.route, outcome: 'uncertain', status: 0, totalMs, reason: 'error' }, undefined);
    return fate;
  };
}

function traceOf({ delivery: { traceparent } }: Job, { name, path }: Route, tracing: Tracing | undefined) {
  return traceparent === undefined ? undefined : tracing?.resume({ route: name, path, traceparent });
}

/** What the application answered; 0 where it did not. */
function statusOf(outcome: Outcome): number {
  return 'reply' in outcome ? outcome.reply.status : 0;
}
