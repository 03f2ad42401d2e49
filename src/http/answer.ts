/**
 * The one table from outcome to response (docs/answers.md). What the gateway answers itself carries
 * `Hookonce-Outcome` and says in JSON what happened; an application's reply goes through as it is.
 * No answer names an address, a key or an error of the machine.
 */
import {
  header,
  type AppReply,
  type Done,
  type Outcome,
  type RawHeaders,
  type RejectReason,
} from '../core/delivery.ts';
import type { Route } from '../core/route.ts';

export interface Answer {
  readonly status: number;
  /** Instead of the usual phrase. */
  readonly reason?: string;
  readonly headers: RawHeaders;
  readonly body: Buffer;
}

/** What the table needs to know of the route. */
export type AnswerRoute = Pick<Route, 'successStatus' | 'inFlight' | 'duplicateReply' | 'async'>;

export function answer(outcome: Outcome, route: AnswerRoute): Answer {
  switch (outcome.kind) {
    case 'delivered':
    case 'refused':
      return relay(outcome.reply);
    case 'duplicate':
      return marked(duplicate(outcome.done, route), outcome.replay === true ? ['Hookonce-Replay', 'true'] : []);
    case 'in-progress':
      return route.inFlight.policy === 'accept' && outcome.split !== true
        ? own(route.successStatus, 'in-progress', 'this event is being handled')
        : own(503, 'in-progress', 'this event is being handled, try again', retryAfter(outcome.retryAfterMs));
    case 'rejected':
      return own(rejectStatus(outcome.reason), 'rejected', outcome.message);
    case 'handshake':
      return marked(outcome.answer, ['Hookonce-Outcome', 'handshake']);
    case 'unreachable':
      return own(502, 'unreachable', 'the application could not be reached');
    case 'uncertain':
      return outcome.how !== 'reset'
        ? own(504, 'uncertain', 'the application did not answer in time')
        : own(502, 'uncertain', 'the application broke off before it had answered');
    case 'stale':
      return own(route.successStatus, 'stale', 'a newer version of the same resource was handled before');
    case 'accepted':
      return own(route.async?.acceptedStatus ?? 202, 'accepted', 'this event will be handled');
    case 'unavailable':
      return own(503, 'unavailable', 'the event cannot be handled right now, try again', retryAfter(0));
    case 'overloaded':
      return own(503, 'overloaded', 'too much to do right now, try again', retryAfter(0));
  }
}

function marked(given: Answer, marks: RawHeaders): Answer {
  return marks.length === 0 ? given : { ...given, headers: [...given.headers, ...marks] };
}

/** An answer of the gateway itself. Statuses without content (RFC 9110 15.3.5, 15.4.5) get no body. */
export function own(status: number, outcome: string, message: string, more: RawHeaders = []): Answer {
  const headers = ['Hookonce-Outcome', outcome, ...more];
  if (bodiless(status)) return { status, headers, body: EMPTY };
  const body = Buffer.from(`${JSON.stringify({ outcome, message })}\n`);
  return {
    status,
    headers: [...headers, 'Content-Type', 'application/json', 'Content-Length', `${body.length}`],
    body,
  };
}

const EMPTY = Buffer.alloc(0);
const bodiless = (status: number): boolean => status === 204 || status === 304;

/** Whole seconds, 1 to 30: soon enough for a sender's first retry, late enough not to drum. */
function retryAfter(ms: number): RawHeaders {
  return ['Retry-After', `${Math.min(30, Math.max(1, Math.ceil(ms / 1000)))}`];
}

function rejectStatus(reason: RejectReason): number {
  switch (reason) {
    case 'bad_signature':
    case 'missing_signature':
    case 'stale_signature':
      return 401;
    case 'no_identity':
    case 'bad_request':
      return 400;
    case 'other_body':
      return 422;
    case 'too_large':
      return 413;
    case 'unsupported_coding':
      return 415;
  }
}

/**
 * The sender gets what counts as success for it, or the status by which the application ended the
 * event (a 410 that means "do not send again").
 */
function duplicate(done: Done, route: AnswerRoute): Answer {
  const success = done.status >= 200 && done.status <= 299;
  const marks = route.duplicateReply === 'stored' && done.reply === 'omitted' ? ['Hookonce-Reply', 'omitted'] : [];
  if (route.duplicateReply === 'stored' && typeof done.reply === 'object') {
    const { contentType, body } = done.reply;
    const headers = ['Hookonce-Outcome', 'duplicate'];
    if (bodiless(done.status)) return { status: done.status, headers, body: EMPTY };
    if (contentType !== undefined) headers.push('Content-Type', contentType);
    return { status: done.status, headers: [...headers, 'Content-Length', `${body.length}`], body };
  }
  return own(success ? route.successStatus : done.status, 'duplicate', 'this event was handled before', marks);
}

/**
 * Status, header lines and body as the application sent them. The length is stated anew: a chunked
 * reply had none, and a body that was too large to keep is gone (`Hookonce-Reply: omitted`).
 */
function relay(reply: AppReply): Answer {
  const status = { status: reply.status, ...(reply.reason !== undefined && { reason: reply.reason }) };
  if (reply.status === 304) return { ...status, headers: reply.headers, body: EMPTY };
  if (reply.status === 204) return { ...status, headers: without(reply.headers, ['content-length']), body: EMPTY };
  if (reply.body === undefined) {
    const headers = without(reply.headers, ['content-length', 'content-encoding']);
    return { ...status, headers: [...headers, 'Hookonce-Reply', 'omitted', 'Content-Length', '0'], body: EMPTY };
  }
  const stated = header(reply.headers, 'content-length') !== undefined;
  const headers = stated ? reply.headers : [...reply.headers, 'Content-Length', `${reply.body.length}`];
  return { ...status, headers, body: reply.body };
}

function without(headers: RawHeaders, names: readonly string[]): string[] {
  return headers.flatMap((name, i) =>
    i % 2 === 0 && !names.includes(name.toLowerCase()) ? [name, headers[i + 1]!] : [],
  );
}
