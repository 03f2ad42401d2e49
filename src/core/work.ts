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
import type { Job } from './queue.ts';
import { restored } from './queued.ts';
import type { Route } from './route.ts';

/** One try. `share`: the memory that its body takes. `retentionMs`: how long the work is remembered. */
export async function work(
  gate: Gate,
  route: Route,
  job: Job,
  share: Share,
  retentionMs: number,
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
  const ordered = inOrder(gate, gate.claims, route, delivery);
  const claim = await ordered.claims.claim(workKey(key, job.replay?.again ?? ''), retentionMs);
  trail.claimMs = gate.clock.now() - startedMs;
  switch (claim.kind) {
    case 'won':
      return await deliver(ordered, route, delivery, claim.lease, trail, key);
    case 'done':
      return { kind: 'duplicate', done: claim.done };
    case 'held':
      return { kind: 'in-progress', retryAfterMs: claim.leftMs, ...(claim.split && { split: true }) };
    case 'unavailable':
      if (route.onUnavailable !== 'forward') return { kind: 'unavailable' };
      gate.events.unclaimed(route.name, 'no_quorum');
      return await unclaimed();
  }
}
