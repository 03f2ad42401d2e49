/**
 * Async mode: the event is put in the queue under its claim, and is done for its sender once it lies there.
 * What the application makes of it is claimed apart, under the key's other half (`work.ts`).
 *
 * | the queue           | claim                                   | outcome     |
 * | has it              | complete, in the background if need be  | accepted    |
 * | does not have it    | release; the attempt is taken back      | unavailable |
 * | may have it         | release; the sender's retry may add a second job, which ends as a duplicate | unavailable |
 */
import { completionOf } from './completion.ts';
import type { DeliveryKey, Outcome, Trail, Verified } from './delivery.ts';
import type { Gate } from './handle.ts';
import { Watchdog } from './lease.ts';
import type { Completion, Lease } from './ports.ts';
import { queued } from './queued.ts';
import type { Route } from './route.ts';

const NO_QUEUE: Outcome = { kind: 'unavailable', why: 'queue' };

/** Under a lease that was won. */
export async function accept(
  gate: Gate,
  route: Route,
  delivery: Verified,
  lease: Lease,
  trail: Trail,
): Promise<Outcome> {
  trail.attempt = lease.attempt;
  const watchdog = new Watchdog(gate.claims, lease, gate.times, gate.clock, gate.events);
  const enqueued = await enqueue(gate, route, delivery, lease.key, trail);
  await watchdog.stop();
  if (enqueued === 'queued') {
    await gate.claims.complete(lease, acceptance(route, delivery, trail));
    return { kind: 'accepted', attempt: lease.attempt };
  }
  await gate.claims.release(lease, enqueued === 'unknown');
  return NO_QUEUE;
}

/** Without voters, or without a name. */
export async function acceptUnclaimed(
  gate: Gate,
  route: Route,
  delivery: Verified,
  key: DeliveryKey | undefined,
  trail: Trail,
): Promise<Outcome> {
  const enqueued = await enqueue(gate, route, delivery, key, trail);
  return enqueued === 'queued' ? { kind: 'accepted', attempt: 0 } : NO_QUEUE;
}

/** What copies of an accepted event find: there is no answer of the application that could be kept. */
export function acceptance(route: Route, delivery: Verified, trail: Trail): Completion {
  const reply = { status: route.async?.acceptedStatus ?? 202, headers: [], body: undefined };
  return { ...completionOf(route, delivery, reply, trail), reply: undefined };
}

async function enqueue(
  { queue, clock, events }: Gate,
  route: Route,
  delivery: Verified,
  key: DeliveryKey | undefined,
  trail: Trail,
): Promise<'queued' | 'failed' | 'unknown'> {
  if (!queue) return 'failed';
  const enqueued = await queue.enqueue(queued(route, delivery, key, trail, clock.wall()));
  events.enqueued(route.name, enqueued);
  return enqueued;
}
