/**
 * The spine: verify → identify → claim → deliver. It reads like section 3 of the design; what each step
 * means is in its own file. Handled failures are outcomes; an exception here is a bug.
 */
import { authenticate } from './authenticate.ts';
import type { Background } from './background.ts';
import { completionOf, hasSameBody } from './completion.ts';
import { decoded } from './content.ts';
import type { AppReply, DeliveryKey, Outcome, Received, Rejected, Trail, Verified } from './delivery.ts';
import { requestFor } from './forward.ts';
import { contentKey, identify, readsBody } from './identify.ts';
import type { InFlight, Led } from './in-flight.ts';
import { Watchdog, type HoldTimes } from './lease.ts';
import type { AppRequest, AppResult, Claims, Clock, Events, Lease, SenderKeys, Upstream } from './ports.ts';
import { GuardedClaims } from './replay-guard.ts';
import { completes, type Route } from './route.ts';
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
}

/** One delivery on a route. `trail` is filled in as the delivery goes along, for its report. */
export async function handle(gate: Gate, route: Route, received: Received, trail: Trail): Promise<Outcome> {
  const verified = await authenticate(gate, route, received);
  if ('kind' in verified) return verified;
  const key = nameOf(gate, route, await readable(route, verified));
  if (key === undefined) return await deliverUnclaimed(gate, route, verified, undefined, trail);
  if ('kind' in key) return key;
  trail.key = key.id;

  const outcome = await deliverOnce(gate, route, verified, key, trail);
  if (outcome.kind !== 'duplicate' || outcome.replay || hasSameBody(route, outcome.done, verified)) return outcome;
  return await deliverOther(gate, route, verified, trail);
}

/** As the leader of the event's copies, or as one that waits for it. */
async function deliverOnce(
  gate: Gate,
  route: Route,
  delivery: Verified,
  key: DeliveryKey,
  trail: Trail,
): Promise<Outcome> {
  const guarded = guardReplays(gate, route, delivery);
  return await gate.inFlight.pass(
    key,
    route,
    async (forwarding) => await lead(guarded, route, delivery, key, trail, forwarding),
  );
}

/** An id that was handled with another body: a mistake of the sender, or an event in its own right. */
async function deliverOther(gate: Gate, route: Route, delivery: Verified, trail: Trail): Promise<Outcome> {
  gate.events.otherBody(route.name);
  if (route.fingerprint === 'refuse') return rejected('other_body', 'this event was handled before, with another body');
  const key = identify({ ...route.identity, bodyHash: true }, gate.service, route.name, delivery);
  if ('kind' in key) return key;
  trail.key = key.id;
  return await deliverOnce(gate, route, delivery, key, trail);
}

/** The delivery with a body in which its name can be read, as far as that is possible. */
async function readable(route: Route, delivery: Verified): Promise<Verified> {
  if (delivery.decode === undefined || !readsBody(route.identity.parts)) return delivery;
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
    case 'won':
      forwarding();
      return ended(gate, route, delivery, await deliver(gate, route, delivery, claim.lease, trail), trail);
    case 'done':
      if (claim.replay) gate.events.replayBlocked(route.name);
      return { kind: 'ended', outcome: { ...claim, kind: 'duplicate' }, done: claim.done };
    case 'held':
      return claim;
    case 'unavailable':
      if (route.onUnavailable === 'reject') return { kind: 'ended', outcome: { kind: 'unavailable' }, done: undefined };
      forwarding();
      return ended(gate, route, delivery, await deliverUnclaimed(gate, route, delivery, key, trail), trail);
  }
}

/** With success, the copies that waited are told what a duplicate is told. */
function ended(gate: Gate, route: Route, delivery: Verified, outcome: Outcome, trail: Trail): Led {
  if (outcome.kind !== 'delivered') return { kind: 'ended', outcome, done: undefined };
  const done = { ...completionOf(route, delivery, outcome.reply, trail), wallMs: gate.clock.wall() };
  return { kind: 'ended', outcome, done };
}

/** Forwards under a lease that was won, and settles it. The watchdog has stopped before anything is settled. */
export async function deliver(
  gate: Gate,
  route: Route,
  delivery: Verified,
  lease: Lease,
  trail: Trail,
): Promise<Outcome> {
  const { attempt } = lease;
  trail.attempt = attempt;
  const heldSinceMs = gate.clock.now();
  const watchdog = new Watchdog(gate.claims, lease, gate.times, gate.clock, gate.events);
  const result = await gate.upstream.send(requestFor(route, delivery, lease.key, lease), () => lease.mayStart());
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
