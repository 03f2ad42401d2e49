/** Where the order of a route comes into the life of a delivery: its claims, and what becomes of a stale one. */
import { completionOf } from './completion.ts';
import type { Outcome, Trail, Verified } from './delivery.ts';
import type { Gate } from './handle.ts';
import { placeOf } from './order.ts';
import { OrderedClaims, OrderedLease } from './ordered-claims.ts';
import type { Claims, Completion, Lease } from './ports.ts';
import type { Route } from './route.ts';

/**
 * The same gate, with claims that hold the resource as well as the event. `plain`: claims without anything that goes
 * along with the event. `legible`: the delivery with a body that can be read. `keepMs`: how long versions are remembered.
 */
export function inOrder(
  gate: Gate,
  plain: Claims,
  route: Route,
  legible: Verified,
  keepMs: number = route.retentionMs,
): Gate {
  const { versions, clock, background, times } = gate;
  if (!route.ordering || !versions) return gate;
  const parts = { event: gate.claims, resource: plain, versions, clock, background, ...times };
  const place = legible.place ?? placeOf(route.ordering, gate.service, route.name, legible);
  return { ...gate, claims: new OrderedClaims(parts, place, keepMs) };
}

/** The delivery with its place in the order, for whoever takes it out of the queue. */
export function placed(gate: Gate, route: Route, delivery: Verified, legible: Verified): Verified {
  return route.ordering ? { ...delivery, place: placeOf(route.ordering, gate.service, route.name, legible) } : delivery;
}

/** Whether this event is not to be forwarded any more. Tells what is out of order. */
export function isDropped({ events }: Gate, route: Route, lease: Lease): boolean {
  if (lease.stale === undefined || !route.ordering) return false;
  const drops = lease.stale === 'true' && route.ordering.onStale === 'drop';
  const unread = lease instanceof OrderedLease && lease.resource === undefined;
  events.outOfOrder(route.name, drops ? 'dropped' : unread ? 'unread' : lease.stale === 'true' ? 'marked' : 'maybe');
  return drops;
}

/** The event is done for its sender: what it says has been overtaken. */
export async function drop(gate: Gate, route: Route, delivery: Verified, lease: Lease, trail: Trail): Promise<Outcome> {
  const { attempt } = lease;
  trail.attempt = attempt;
  if (lease instanceof OrderedLease) lease.drop();
  await gate.claims.complete(lease, overtaken(route, delivery, trail));
  return { kind: 'stale', attempt };
}

/** What copies of a dropped event find. */
export function overtaken(route: Route, delivery: Verified, trail: Trail): Completion {
  const reply = { status: route.successStatus, headers: [], body: undefined };
  return { ...completionOf(route, delivery, reply, trail), reply: undefined };
}
