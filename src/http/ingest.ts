/**
 * From a request to its answer: find the route, read the body, hand over, answer, report. What is refused
 * here (no route, method, size, memory) has touched neither signature nor claim.
 *
 * A client that goes away changes nothing: the delivery is handled to its end.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { allHeaders, type Outcome, type OutcomeKind, type Received, type Trail } from '../core/delivery.ts';
import type { Clock, DeliveryReport, Events } from '../core/ports.ts';
import type { Route } from '../core/route.ts';
import { answer, own, type Answer } from './answer.ts';
import { readBody } from './body.ts';
import type { Memory } from './memory.ts';
import { respond } from './respond.ts';
import { createRouter, originForm } from './routing.ts';

export interface IngestOptions {
  readonly routes: readonly Route[];
  /** Largest body of one delivery, bytes. */
  readonly bodyLimit: number;
  readonly memory: Memory;
  readonly clock: Clock;
  readonly events: Pick<Events, 'deliveryStarted' | 'deliveryEnded' | 'warn'>;
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

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE'];
/** The label of whatever belongs to no route; a path is never a label. */
const UNMATCHED = 'unmatched';
const NONE = { kind: 'none' } as const;

const NOT_FOUND = own(404, undefined, 'no such route');
const AMBIGUOUS = own(400, 'rejected', 'the path can be read as that of two routes');
const WRONG_METHOD = own(405, 'rejected', 'not a method for deliveries', ['Allow', METHODS.join(', ')]);
const WRONG_HOST = own(400, 'rejected', 'one Host is needed');
/** A bug: whether the application was reached is not known. */
const FAILED = own(500, 'uncertain', 'internal error');

/** Takes requests from the server; what it returns never rejects. */
export function createIngest(options: IngestOptions): (incoming: Incoming) => Promise<void> {
  const { bodyLimit, clock, events, memory } = options;
  const router = createRouter(options.routes);

  return async ({ req, res, target: rawTarget, expectsContinue }) => {
    const begun = clock.now();
    /** A client that was not told to continue keeps its body; what it sends next could be either, so the connection ends. */
    let unread = expectsContinue;
    const end = (route: string, given: Answer, outcome: OutcomeKind, more: Partial<DeliveryReport>): void => {
      respond(res, given, unread || options.closing());
      events.deliveryEnded({ route, outcome, status: given.status, totalMs: clock.now() - begun, ...more });
    };
    const refuse = (route: string, given: Answer, reason: string, outcome: OutcomeKind = 'rejected'): void => {
      events.deliveryStarted(route);
      end(route, given, outcome, { reason });
    };

    if (!hostIsRight(req)) return refuse(UNMATCHED, WRONG_HOST, 'bad_request');
    const target = originForm(rawTarget);
    const match = target === undefined ? NONE : router(target);
    if (target === undefined || match.kind === 'none') return refuse(UNMATCHED, NOT_FOUND, 'no_route');
    if (match.kind === 'ambiguous') return refuse(UNMATCHED, AMBIGUOUS, 'bad_request');
    const { route } = match;
    if (!METHODS.includes(req.method!)) return refuse(route.name, WRONG_METHOD, 'method');

    const body = await readBody(req, bodyLimit, memory, () => {
      if (unread) res.writeContinue();
      unread = false;
    });
    if (body.kind === 'gone') return;
    if (body.kind === 'refused') {
      return refuse(route.name, answer(body.outcome, route), reasonOf(body.outcome)!, body.outcome.kind);
    }

    const trail: Trail = {};
    events.deliveryStarted(route.name);
    try {
      const received: Received = { method: req.method!, target, headers: req.rawHeaders, body: body.bytes };
      const outcome = await options.handle(route, received, trail);
      const reason = reasonOf(outcome);
      const more = reason === undefined ? trail : { ...trail, reason };
      end(route.name, answer(outcome, route), outcome.kind, more);
    } catch (error) {
      events.warn('a delivery failed unexpectedly', { route: route.name, error });
      end(route.name, FAILED, 'uncertain', { ...trail, reason: 'error' });
    } finally {
      body.release();
    }
  };
}

/** RFC 9112 3.2: exactly one Host; HTTP/1.0 may do without. */
function hostIsRight(req: IncomingMessage): boolean {
  const hosts = allHeaders(req.rawHeaders, 'host').length;
  return hosts === 1 || (hosts === 0 && req.httpVersion === '1.0');
}

function reasonOf(outcome: Outcome): string | undefined {
  switch (outcome.kind) {
    case 'rejected':
      return outcome.reason;
    case 'overloaded':
      return outcome.limit;
    case 'uncertain':
      return outcome.how;
    case 'delivered':
    case 'refused':
    case 'duplicate':
    case 'in-progress':
    case 'unreachable':
    case 'unavailable':
      return undefined;
  }
}
