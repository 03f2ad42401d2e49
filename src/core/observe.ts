/**
 * Routes that only observe: everything goes as on any other route, claims and completions
 * too, but nobody waits for a copy, and what would have been stopped is forwarded all the same. The application
 * sees `Hookonce-Observed: <outcome>` on it instead of an attempt, and its own answer is the sender's.
 *
 *     verify → claim → deliver ─┬─ the application was asked, or a limit is reached ──▶ as it is
 *                               └─ duplicate, in-progress, rejected, unavailable, handshake ──▶ forwarded, unclaimed
 *
 * A signature that does not hold is no exception: the application stands where it would without the gateway,
 * and has to verify for itself. What is forwarded in this way settles nothing.
 */
import type { Outcome, OutcomeKind, Received, Trail } from './delivery.ts';
import { observedRequest } from './forward.ts';
import { handle, sendUnclaimed, type Gate } from './handle.ts';
import type { Route } from './route.ts';

/** One delivery on a route that only observes. */
export async function observe(gate: Gate, route: Route, received: Received, trail: Trail): Promise<Outcome> {
  const hasty: Route = { ...route, inFlight: { ...route.inFlight, policy: 'reject' } };
  const would = await handle(gate, hasty, received, trail);
  if (!STOPPED.includes(would.kind)) return would;
  gate.events.observed(route.name, would.kind);
  trail.observed = would.kind;
  if (would.kind === 'rejected') trail.reason = would.reason;
  return await sendUnclaimed(gate, route, observedRequest(route, received, trail.key, would.kind), trail);
}

/** Where the gateway itself answers, for a reason other than the application or its own limits. */
export const STOPPED: readonly OutcomeKind[] = stopped({
  duplicate: true,
  'in-progress': true,
  rejected: true,
  unavailable: true,
  handshake: true,
  delivered: false,
  accepted: false,
  stale: true,
  refused: false,
  unreachable: false,
  uncertain: false,
  overloaded: false,
});

/** Complete by type: a new outcome has to say which it is. */
function stopped(kinds: Readonly<Record<OutcomeKind, boolean>>): OutcomeKind[] {
  return (Object.keys(kinds) as OutcomeKind[]).filter((kind) => kinds[kind]);
}
