/**
 * The spine: verify → identify → claim → deliver. It reads like section 3 of the design; what each step
 * means is in its own file. Handled failures are outcomes; an exception here is a bug.
 */
import type { Background } from './background.ts';
import { header, type AppReply, type DeliveryKey, type Outcome, type Received, type StoredReply, type Trail, type Verified } from './delivery.ts';
import { requestFor } from './forward.ts';
import { identify } from './identify.ts';
import type { InFlight, Led } from './in-flight.ts';
import { Watchdog, type HoldTimes } from './lease.ts';
import type { AppResult, Claims, Clock, Completion, Events, Lease, Upstream } from './ports.ts';
import { completes, type Route } from './route.ts';
import { settle } from './settle.ts';
import { verify } from './verify.ts';

/** What the spine works with. */
export interface Gate {
  /** Gateways of one service share events. */
  readonly service: string;
  readonly claims: Claims;
  readonly upstream: Upstream;
  readonly clock: Clock;
  readonly events: Events;
  readonly times: HoldTimes;
  readonly inFlight: InFlight;
  readonly background: Background;
}

/** One delivery on a route. `trail` is filled in as the delivery goes along, for its report. */
export async function handle(gate: Gate, route: Route, received: Received, trail: Trail): Promise<Outcome> {
  const verified = verify(route.signature, route.secrets, received, gate.clock.wall());
  if ('kind' in verified) return verified;
  const key = identify(route.identity, gate.service, route.name, verified);
  if ('kind' in key) return key;
  trail.key = key.id;

  return await gate.inFlight.pass(key, route, async () => await lead(gate, route, verified, key, trail));
}

/** This delivery's turn: claims the event, and delivers it when the claim is won. */
async function lead(gate: Gate, route: Route, delivery: Verified, key: DeliveryKey, trail: Trail): Promise<Led> {
  const startedMs = gate.clock.now();
  const claim = await gate.claims.claim(key, route.retentionMs);
  trail.claimMs = gate.clock.now() - startedMs;
  switch (claim.kind) {
    case 'won':
      return ended(gate, route, await deliver(gate, route, delivery, claim.lease, trail), trail);
    case 'done':
      return { kind: 'ended', outcome: { kind: 'duplicate', done: claim.done }, done: claim.done };
    case 'held':
      return claim;
    case 'unavailable':
      if (route.onUnavailable === 'reject') return { kind: 'ended', outcome: { kind: 'unavailable' }, done: undefined };
      return ended(gate, route, await deliverUnclaimed(gate, route, delivery, key, trail), trail);
  }
}

/** With success, the copies that waited are told what a duplicate is told. */
function ended(gate: Gate, route: Route, outcome: Outcome, trail: Trail): Led {
  const done = outcome.kind === 'delivered' ? { ...completionOf(route, outcome.reply, trail), wallMs: gate.clock.wall() } : undefined;
  return { kind: 'ended', outcome, done };
}

/** Forwards under a lease that was won, and settles it. The watchdog has stopped before anything is settled. */
export async function deliver(gate: Gate, route: Route, delivery: Verified, lease: Lease, trail: Trail): Promise<Outcome> {
  const { attempt } = lease;
  trail.attempt = attempt;
  const watchdog = new Watchdog(gate.claims, lease, gate.times, gate.clock, gate.events);
  const result = await gate.upstream.send(requestFor(route, delivery, lease.key, attempt), () => lease.mayStart());
  await watchdog.stop();
  if (attempt > 1 && result.kind !== 'never-sent') gate.events.attemptRepeated(route.name);

  const settlement = settle(route, result);
  switch (settlement.claim) {
    case 'complete':
      await gate.claims.complete(lease, completionOf(route, settlement.reply, trail));
      break;
    case 'release':
      await gate.claims.release(lease, settlement.sent);
      break;
    case 'leave':
      await gate.claims.leave(lease);
      break;
  }
  if (result.kind === 'unknown') gate.background.run(settleLate(gate, route, lease, result, trail));
  return outcomeOf(gate, route, result, attempt, trail);
}

/** The route prefers a double to a refusal: no voters, no claim, and the application is told so. */
async function deliverUnclaimed(gate: Gate, route: Route, delivery: Verified, key: DeliveryKey, trail: Trail): Promise<Outcome> {
  const result = await gate.upstream.send(requestFor(route, delivery, key, undefined), () => true);
  if (result.kind === 'unknown') gate.background.run(lateReply(gate, route, result).then(() => undefined));
  return outcomeOf(gate, route, result, 0, trail);
}

/** A late success completes whenever it comes, a late failure releases while the lock is ours. */
async function settleLate(gate: Gate, route: Route, lease: Lease, result: Unknown, trail: Trail): Promise<void> {
  const reply = await lateReply(gate, route, result);
  if (!reply) return;
  if (completes(route, reply.status)) await gate.claims.complete(lease, completionOf(route, reply, trail));
  else await gate.claims.release(lease, true);
}

/** The answer to an exchange that was left running; after `maxHold` it is cut. */
async function lateReply(gate: Gate, route: Route, result: Unknown): Promise<AppReply | undefined> {
  const cancel = gate.clock.timer(gate.times.maxHoldMs, () => result.cut());
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
        case 'expired':
          // Too late to begin: for the sender it is as if another attempt held the event.
          gate.events.lockFailed('expired');
          return { kind: 'in-progress', retryAfterMs: 0 };
        case 'in_flight':
        case 'waiting':
          return { kind: 'overloaded', limit: result.why };
      }
  }
}

const MAX_STORED_REPLY = 4 * 1024;

function completionOf(route: Route, reply: AppReply, trail: Trail): Completion {
  const stored = route.duplicateReply === 'stored' ? storedReply(reply) : undefined;
  return { status: reply.status, traceId: trail.traceId ?? '', reply: stored };
}

function storedReply(reply: AppReply): StoredReply | 'omitted' {
  if (!reply.body || reply.body.length > MAX_STORED_REPLY) return 'omitted';
  return { contentType: header(reply.headers, 'content-type'), body: reply.body };
}
