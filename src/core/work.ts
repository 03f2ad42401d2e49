/**
 * The worker's half of async mode: a job is claimed under its key's work half, and delivered like any other
 * delivery. So whatever the queue does (a job that stalled, a second job of the event), the application is
 * handed the event once, and the rest are duplicates.
 */
import type { DeliveryKey, Outcome, Trail } from './delivery.ts';
import { requestFor } from './forward.ts';
import { deliver, sendUnclaimed, type Gate } from './handle.ts';
import { inOrder } from './in-order.ts';
import { workKey } from './work-key.ts';
import type { Share } from './memory.ts';
import type { ClaimResult } from './ports.ts';
import type { Job } from './queue.ts';
import { restored } from './queued.ts';
import type { Route } from './route.ts';

/** Another look at a busy resource: the lock's life says nothing of when it is free, as every success frees it. */
const LONGEST_LOOK_MS = 2000;

/** How long what a try leaves behind is remembered. */
export interface Kept {
  readonly workMs: number;
  readonly versionsMs: number;
}

/** One try. `share`: the memory that its body takes. */
export async function work(
  gate: Gate,
  route: Route,
  job: Job,
  share: Share,
  kept: Kept,
  trail: Trail,
): Promise<Outcome> {
  if (!share.take(job.delivery.body.length)) return { kind: 'overloaded', limit: 'memory' };
  const delivery = restored(job.delivery, share);
  const key = job.delivery.key === undefined ? undefined : ({ id: job.delivery.key } as DeliveryKey);
  const unclaimed = async (): Promise<Outcome> =>
    await sendUnclaimed(gate, route, requestFor(route, delivery, key, undefined), trail);
  if (key === undefined) return await unclaimed();
  trail.key = key.id;

  const startedMs = gate.clock.now();
  const again = job.replay?.again ?? '';
  const ordered = inOrder(gate, gate.claims, route, delivery, kept.versionsMs);
  const claim = await ordered.claims.claim(workKey(key, again), kept.workMs);
  trail.claimMs = gate.clock.now() - startedMs;
  switch (claim.kind) {
    case 'won':
      return await deliver(ordered, again === '' ? route : forced(route), delivery, claim.lease, trail, key);
    case 'done':
      return { kind: 'duplicate', done: claim.done };
    case 'held':
      return { kind: 'in-progress', retryAfterMs: lookAgainMs(claim, job, gate), ...(claim.split && { split: true }) };
    case 'unavailable':
      if (route.onUnavailable !== 'forward') return { kind: 'unavailable' };
      gate.events.unclaimed(route.name, 'no_quorum');
      return await unclaimed();
  }
}

/** Whoever asks for an event in spite of everything gets it: what is older is forwarded and marked. */
function forced(route: Route): Route {
  return route.ordering ? { ...route, ordering: { ...route.ordering, onStale: 'mark' } } : route;
}

/** The longer a job has been waiting for its resource, the more seldom it looks. */
function lookAgainMs(
  { leftMs, unknown, of }: ClaimResult & { kind: 'held' },
  { delivery }: Job,
  { clock }: Gate,
): number {
  if (of === undefined || unknown) return leftMs;
  const waitedMs = Math.max(0, clock.wall() - delivery.acceptedWallMs);
  return Math.min(leftMs, waitedMs / 4, LONGEST_LOOK_MS);
}
