/**
 * The spine: verify → identify → claim → deliver. It reads like section 3 of the design; what each step
 * means is in its own file. Handled failures are outcomes; an exception here is a bug.
 */
import { accept, acceptance, acceptUnclaimed } from './accept.ts';
import { authenticate } from './authenticate.ts';
import type { Background } from './background.ts';
import { completionOf, hasSameBody } from './completion.ts';
import { decoded } from './content.ts';
import type { AppReply, DeliveryKey, Outcome, Received, Rejected, Trail, Verified } from './delivery.ts';
import { claimsFor } from './elements-claims.ts';
import { requestFor } from './forward.ts';
import { contentKey, identify, readsBody } from './identify.ts';
import type { InFlight, Led } from './in-flight.ts';
import { drop, inOrder, isDropped, overtaken, placed } from './in-order.ts';
import { Watchdog, type HoldTimes } from './lease.ts';
import type {
  AppRequest,
  AppResult,
  Claims,
  Clock,
  Completion,
  Events,
  Lease,
  SenderKeys,
  Upstream,
  VersionStore,
} from './ports.ts';
import { GuardedClaims } from './replay-guard.ts';
import { completes, type Route } from './route.ts';
import type { Queue } from './queue.ts';
import { settle } from './settle.ts';
import { rejected } from './signature-items.ts';

/** What the spine works with. */
export interface Gate {
  /** Gateways of one service share events. */
  readonly service: string;
  readonly claims: Claims;
  readonly upstream: Upstream;
  readonly keys: SenderKeys;
  readonly clock: Clock;
  readonly events: Events;
  readonly times: HoldTimes;
  readonly inFlight: InFlight;
  readonly background: Background;
  /** Undefined: no route is in async mode. */
  readonly queue?: Pick<Queue, 'enqueue'> | undefined;
  /** Undefined: there is no order. */
  readonly versions?: VersionStore | undefined;
}

/** One delivery on a route. `trail` is filled in as the delivery goes along, for its report. */
export async function handle(gate: Gate, route: Route, received: Received, trail: Trail): Promise<Outcome> {
  const verified = await authenticate(gate, route, received);
  if ('kind' in verified) return verified;
  const legible = await readable(route, verified);
  const key = nameOf(gate, route, legible);
  if (key === undefined) return await deliverUnclaimed(gate, route, verified, undefined, trail);
  if ('kind' in key) return key;
  trail.key = key.id;

  const claims = claimsFor(gate, route, legible, key, trail);
  if (claims === undefined) return { kind: 'overloaded', limit: 'memory' };
  const outcome = await deliverOnce({ ...gate, claims }, route, verified, legible, key, trail);
  if (outcome.kind !== 'duplicate' || outcome.replay || hasSameBody(route, outcome.done, verified)) return outcome;
  return await deliverOther(gate, route, verified, legible, trail);
}

/** As the leader of the event's copies, or as one that waits for it. `legible`: the same, with a body that can be read. */
async function deliverOnce(
  gate: Gate,
  route: Route,
  delivery: Verified,
  legible: Verified,
  key: DeliveryKey,
  trail: Trail,
): Promise<Outcome> {
  const guarded = guardReplays(gate, route, delivery);
  // In async mode it is the work that is done in order.
  const ordered = route.async ? guarded : inOrder(guarded, gate.claims, route, legible);
  const onward = route.async ? placed(gate, route, delivery, legible) : delivery;
  return await gate.inFlight.pass(
    key,
    route,
    async (forwarding) => await lead(ordered, route, onward, key, trail, forwarding),
  );
}

/** An id that was handled with another body: a mistake of the sender, or an event in its own right. */
async function deliverOther(
  gate: Gate,
  route: Route,
  delivery: Verified,
  legible: Verified,
  trail: Trail,
): Promise<Outcome> {
  gate.events.otherBody(route.name);
  if (route.fingerprint === 'refuse') return rejected('other_body', 'this event was handled before, with another body');
  const key = identify({ ...route.identity, bodyHash: true }, gate.service, route.name, delivery);
  if ('kind' in key) return key;
  trail.key = key.id;
  return await deliverOnce(gate, route, delivery, legible, key, trail);
}

/** The delivery with a body in which its name can be read, as far as that is possible. */
async function readable(route: Route, delivery: Verified): Promise<Verified> {
  const reads = route.elements !== undefined || route.ordering !== undefined || readsBody(route.identity.parts);
  if (delivery.decode === undefined || !reads) return delivery;
  const read = await decoded(delivery);
  return 'kind' in read ? delivery : read;
}

/** The event's key. A delivery that has none is counted, and goes the way that the route has for it; undefined: without a claim. */
function nameOf(gate: Gate, route: Route, delivery: Verified): DeliveryKey | Rejected | undefined {
  const key = identify(route.identity, gate.service, route.name, delivery);
  if (!('kind' in key)) return key;
  gate.events.identityMissing(route.name);
  switch (route.identity.missing) {
    case 'reject':
      return key;
    case 'forward':
      return undefined;
    case 'bodyHash':
      return identify({ ...route.identity, parts: [], bodyHash: true }, gate.service, route.name, delivery);
  }
}

/** The same gate, with claims that hold the content as well as the event. */
function guardReplays(gate: Gate, route: Route, delivery: Verified): Gate {
  if (!route.replayGuard) return gate;
  const content = contentKey(route.replayGuard.of, gate.service, route.name, delivery);
  return content ? { ...gate, claims: new GuardedClaims(gate.claims, content, route.replayGuard.windowMs) } : gate;
}

/** This delivery's turn: claims the event, and delivers it when the claim is won. */
async function lead(
  gate: Gate,
  route: Route,
  delivery: Verified,
  key: DeliveryKey,
  trail: Trail,
  forwarding: () => void,
): Promise<Led> {
  const startedMs = gate.clock.now();
  const claim = await gate.claims.claim(key, route.retentionMs);
  trail.claimMs = gate.clock.now() - startedMs;
  switch (claim.kind) {
    case 'won': {
      forwarding();
      const onward = route.async ? accept : deliver;
      return ended(gate, route, delivery, await onward(gate, route, delivery, claim.lease, trail), trail);
    }
    case 'done':
      if (claim.replay) gate.events.replayBlocked(route.name);
      return { kind: 'ended', outcome: { ...claim, kind: 'duplicate' }, done: claim.done };
    case 'held':
      return claim;
    case 'unavailable':
      if (route.onUnavailable !== 'forward')
        return { kind: 'ended', outcome: { kind: 'unavailable' }, done: undefined };
      forwarding();
      return ended(gate, route, delivery, await deliverUnclaimed(gate, route, delivery, key, trail), trail);
  }
}

/** With success, the copies that waited are told what a duplicate is told. */
function ended(gate: Gate, route: Route, delivery: Verified, outcome: Outcome, trail: Trail): Led {
  const completion = completionBy(outcome, route, delivery, trail);
  if (completion === undefined) return { kind: 'ended', outcome, done: undefined };
  return { kind: 'ended', outcome, done: { ...completion, wallMs: gate.clock.wall() } };
}

/** Undefined: the event is not done by this. */
function completionBy(outcome: Outcome, route: Route, delivery: Verified, trail: Trail): Completion | undefined {
  if (outcome.kind === 'delivered') return completionOf(route, delivery, outcome.reply, trail);
  if (outcome.kind === 'accepted') return acceptance(route, delivery, trail);
  return outcome.kind === 'stale' ? overtaken(route, delivery, trail) : undefined;
}

/**
 * Forwards under a lease that was won, and settles it. The watchdog has stopped before anything is settled.
 * `event`: what the application is told as the event's key, where the lease is on another half of it.
 */
export async function deliver(
  gate: Gate,
  route: Route,
  delivery: Verified,
  lease: Lease,
  trail: Trail,
  event: DeliveryKey = lease.key,
): Promise<Outcome> {
  if (isDropped(gate, route, lease)) return await drop(gate, route, delivery, lease, trail);
  const { attempt } = lease;
  trail.attempt = attempt;
  const heldSinceMs = gate.clock.now();
  const watchdog = new Watchdog(gate.claims, lease, gate.times, gate.clock, gate.events);
  const result = await gate.upstream.send(requestFor(route, delivery, event, lease), () => lease.mayStart());
  await watchdog.stop();
  if (attempt > 1 && result.kind !== 'never-sent') gate.events.attemptRepeated(route.name);

  const settlement = settle(route, result);
  switch (settlement.claim) {
    case 'complete':
      await gate.claims.complete(lease, completionOf(route, delivery, settlement.reply, trail));
      break;
    case 'release':
      await gate.claims.release(lease, settlement.sent);
      break;
    case 'leave':
      await gate.claims.leave(lease);
      break;
  }
  if (result.kind === 'unknown')
    gate.background.run(settleLate(gate, route, delivery, lease, result, heldSinceMs, trail));
  return outcomeOf(gate, route, result, attempt, trail);
}

/** Without voters or without a name there is no claim; the application is told so, and the route prefers a double to a refusal. */
async function deliverUnclaimed(
  gate: Gate,
  route: Route,
  delivery: Verified,
  key: DeliveryKey | undefined,
  trail: Trail,
): Promise<Outcome> {
  gate.events.unclaimed(route.name, key === undefined ? 'no_identity' : 'no_quorum');
  if (route.async) return await acceptUnclaimed(gate, route, delivery, key, trail);
  return await sendUnclaimed(gate, route, requestFor(route, delivery, key, undefined), trail);
}

/** One exchange, with nothing to settle behind it. */
export async function sendUnclaimed(gate: Gate, route: Route, request: AppRequest, trail: Trail): Promise<Outcome> {
  const sinceMs = gate.clock.now();
  const result = await gate.upstream.send(request, () => true);
  if (result.kind === 'unknown') gate.background.run(lateReply(gate, route, result, sinceMs).then(() => undefined));
  return outcomeOf(gate, route, result, 0, trail);
}

/** A late success completes whenever it comes, a late failure releases while the lock is ours. */
async function settleLate(
  gate: Gate,
  route: Route,
  delivery: Verified,
  lease: Lease,
  result: Unknown,
  heldSinceMs: number,
  trail: Trail,
): Promise<void> {
  const reply = await lateReply(gate, route, result, heldSinceMs);
  if (!reply) return;
  if (completes(route, reply.status)) await gate.claims.complete(lease, completionOf(route, delivery, reply, trail));
  else await gate.claims.release(lease, true);
}

/** The answer to an exchange that was left running; after `maxHold` it is cut. */
async function lateReply(gate: Gate, route: Route, result: Unknown, sinceMs: number): Promise<AppReply | undefined> {
  const leftMs = gate.times.maxHoldMs - (gate.clock.now() - sinceMs);
  const cancel = gate.clock.timer(Math.max(0, leftMs), () => result.cut());
  const reply = await result.late;
  cancel();
  gate.events.lateAnswer(route.name, reply?.status);
  return reply;
}

type Unknown = AppResult & { kind: 'unknown' };

function outcomeOf(gate: Gate, route: Route, result: AppResult, attempt: number, trail: Trail): Outcome {
  switch (result.kind) {
    case 'answered':
      trail.upstreamMs = result.upstreamMs;
      return { kind: completes(route, result.reply.status) ? 'delivered' : 'refused', reply: result.reply, attempt };
    case 'unknown':
      return { kind: 'uncertain', how: result.how, attempt };
    case 'never-sent':
      switch (result.why) {
        case 'unreachable':
          return { kind: 'unreachable', message: result.message, attempt };
        case 'connect_timeout':
          return { kind: 'unreachable', message: result.message, attempt, timedOut: true };
        case 'expired':
          // Too late to begin: for the sender it is as if another attempt held the event.
          gate.events.lockFailed('expired');
          return { kind: 'in-progress', retryAfterMs: 0, split: true };
        case 'in_flight':
        case 'waiting':
          return { kind: 'overloaded', limit: result.why };
      }
  }
}
