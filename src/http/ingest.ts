/**
 * From a request to its answer: find its place, read the body, hand over, answer, report. What is refused
 * here (no route, method, size, memory, number) has touched neither signature nor claim.
 *
 * A client that goes away changes nothing: the delivery is handled to its end.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Done, Outcome, OutcomeKind, Received, Trail } from '../core/delivery.ts';
import type { Memory } from '../core/memory.ts';
import type { Arrival, Clock, DeliveryReport, Events, Tracing } from '../core/ports.ts';
import type { Route } from '../core/route.ts';
import { traceContextOf } from '../core/trace-context.ts';
import { answer, own, type Answer } from './answer.ts';
import { readBody } from './body.ts';
import { codingsOf, decode } from './decode.ts';
import { discardRest } from './discard.ts';
import type { Entrance } from './entrance.ts';
import type { Peers } from './peer.ts';
import { respond } from './respond.ts';
import type { Where } from './where.ts';

export interface IngestOptions {
  where(req: IncomingMessage, rawTarget: string): Where;
  /** Takes what is no delivery. */
  passThrough(incoming: Incoming): void;
  readonly peers: Peers;
  readonly entrance: Entrance;
  /** Largest body of one delivery, bytes, where its route has no limit of its own. */
  bodyLimit(): number;
  /** How long a client may take for a body, milliseconds. */
  readonly bodyMs: number;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly events: Pick<Events, 'deliveryStarted' | 'deliveryEnded' | 'warn'>;
  readonly tracing?: Tracing | undefined;
  /** Handles a delivery to its end; what is learnt on the way goes into `trail`. */
  handle(route: Route, received: Received, trail: Trail): Promise<Outcome>;
  /** Whether connections are to be closed with their next answer. */
  closing(): boolean;
}

/** A request as the server hands it in. */
export interface Incoming {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** The request target byte for byte. */
  readonly target: string;
  /** The client waits for `100 Continue` before it sends the body. */
  readonly expectsContinue: boolean;
}

const FULL: Outcome = { kind: 'overloaded', limit: 'in_flight' };
const SLOW = own(408, 'rejected', 'the body took too long');
/** A bug: whether the application was reached is not known. */
const FAILED = own(500, 'uncertain', 'internal error');

/** Takes requests from the server; what it returns never rejects. */
export function createIngest(options: IngestOptions): (incoming: Incoming) => Promise<void> {
  const { bodyMs, clock, entrance, events, memory, peers, tracing } = options;

  return async (incoming) => {
    const { req, res, expectsContinue } = incoming;
    const begunMs = clock.now();
    const where = options.where(req, incoming.target);
    if (where.kind === 'proxied') return options.passThrough({ ...incoming, target: where.target });
    const client = peers.client(req);
    const trace = tracing?.receive(arrivalOf(req, where, client));
    const traceId = trace?.traceId ?? traceContextOf(req.rawHeaders)?.traceId;
    /** A client that was not told to continue keeps its body; what it sends next could be either, so the connection ends. */
    let unread = expectsContinue;
    const end = (
      route: string,
      given: Answer,
      outcome: OutcomeKind,
      more: Partial<DeliveryReport>,
      last = false,
      done?: Done,
    ): void => {
      respond(res, given, last || unread || options.closing());
      const report: { -readonly [Field in keyof DeliveryReport]: DeliveryReport[Field] } = {
        route,
        outcome,
        status: given.status,
        totalMs: clock.now() - begunMs,
        ...more,
      };
      if (client !== undefined) report.client = client;
      if (traceId !== undefined) report.traceId = traceId;
      trace?.end(report, done);
      events.deliveryEnded(report);
    };
    const refuse = (
      route: string,
      given: Answer,
      reason: string,
      outcome: OutcomeKind = 'rejected',
      last = false,
    ): void => {
      events.deliveryStarted(route);
      end(route, given, outcome, { reason }, last);
      discardRest(req, clock, bodyMs);
    };

    if (where.kind === 'refused') return refuse(where.route, where.answer, where.reason, 'rejected', where.last);
    const { route, target } = where;
    const refuseBy = (outcome: Outcome): void =>
      refuse(route.name, answer(outcome, route), reasonOf(outcome)!, outcome.kind);
    if (!entrance.enter(route)) return refuseBy(FULL);

    const share = memory.open();
    try {
      const limit = route.limits?.bodyBytes ?? options.bodyLimit();
      const reading = readBody(req, limit, share, () => {
        if (unread) res.writeContinue();
        unread = false;
      });
      const cancel = clock.timer(bodyMs, reading.giveUp);
      const body = await reading.body;
      cancel();
      if (body.kind === 'gone') return;
      if (body.kind === 'slow') return refuse(route.name, SLOW, 'slow', 'rejected', true);
      if (body.kind === 'refused') return refuseBy(body.outcome);

      const codings = codingsOf(req.rawHeaders);
      const received: Received = {
        ...{ method: req.method!, target, headers: req.rawHeaders, body: body.bytes, share },
        peer: peers.of(req),
        trace,
        ...(codings.length > 0 && { decode: () => decode(body.bytes, codings, limit, share) }),
      };
      const trail: Trail = traceId === undefined ? {} : { traceId };
      if (trace !== undefined) trail.spanId = trace.spanId;
      events.deliveryStarted(route.name);
      try {
        const outcome = await options.handle(route, received, trail);
        const reason = reasonOf(outcome);
        const more = reason === undefined ? trail : { ...trail, reason };
        const done = outcome.kind === 'duplicate' ? outcome.done : undefined;
        end(route.name, answer(outcome, route), outcome.kind, more, false, done);
      } catch (error) {
        events.warn('a delivery failed unexpectedly', { route: route.name, error });
        end(route.name, FAILED, 'uncertain', { ...trail, reason: 'error' });
      }
    } finally {
      entrance.leave(route);
      // The answer is in memory until the client has taken it.
      if (res.writableFinished || res.destroyed) share.release();
      else res.once('close', () => share.release());
    }
  };
}

function arrivalOf(
  { method, rawHeaders }: IncomingMessage,
  where: Exclude<Where, { kind: 'proxied' }>,
  client: string | undefined,
): Arrival {
  const on = where.kind === 'delivery' ? { route: where.route.name, path: where.route.path } : { route: where.route };
  return { ...on, method: method!, headers: rawHeaders, client };
}

function reasonOf(outcome: Outcome): string | undefined {
  switch (outcome.kind) {
    case 'rejected':
      return outcome.reason;
    case 'overloaded':
      return outcome.limit;
    case 'uncertain':
      return outcome.how;
    case 'unreachable':
      return outcome.timedOut === true ? 'connect_timeout' : 'connect';
    case 'delivered':
    case 'refused':
    case 'duplicate':
    case 'in-progress':
    case 'handshake':
    case 'accepted':
    case 'stale':
      return undefined;
    case 'unavailable':
      return outcome.why;
  }
}
