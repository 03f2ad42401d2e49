/**
 * The vocabulary: what a delivery is on its way through the gateway. Each step takes what only the
 * step before it can make, so that nothing unverified is ever identified and nothing unidentified claimed:
 *
 *     Received ──verify──▶ Verified ──identify──▶ DeliveryKey ──claim──▶ Lease ──deliver──▶ Outcome
 *
 * Durations and instants inside the program are milliseconds; `…Ms` instants are on the monotonic
 * clock unless the name says `wall`.
 */

import type { KeyObject } from 'node:crypto';
import type { Share } from './memory.ts';
import type { Place } from './order.ts';
import type { DeliveryTrace } from './ports.ts';

/** Header lines exactly as they came: name, value, name, value… Case, order and repeats are kept. */
export type RawHeaders = readonly string[];

/** Who connected to the gateway. */
export interface Peer {
  /** IP address; IPv4 in its own form. */
  readonly address: string;
  /** Whether what it says about others goes on to the application. */
  readonly believed: boolean;
}

/** One HTTP request on a route, its body complete and untouched. */
export interface Received {
  readonly method: string;
  /** The request target byte for byte, query included. */
  readonly target: string;
  readonly headers: RawHeaders;
  readonly body: Buffer;
  /** The body as it came, where `body` is what a content coding hid. */
  readonly wire?: Buffer | undefined;
  /** Undoes the content coding; undefined where there is none. An outcome means that it cannot. */
  readonly decode?: (() => Promise<Buffer | Outcome>) | undefined;
  /** Who connected. */
  readonly peer?: Peer | undefined;
  /** The memory that it holds. */
  readonly share?: Share | undefined;
  /** Where traces are exported. */
  readonly trace?: DeliveryTrace | undefined;
}

/** What a route's secret became: bytes that both sides know, or a key that only checks. One is never taken for the other. */
export type Key = Buffer | KeyObject;

declare const verified: unique symbol;
/** A delivery whose signature held. Only `core/verify.ts` makes one. */
export type Verified = Received & {
  /** The message id that the signature covers, where the sender signs one. */
  readonly signedId?: string | undefined;
  /** The route's secret that it was signed with. */
  readonly signedBy?: Key | undefined;
  /** On its way through the queue: its place in the order of its resource, where that was read when it came in. */
  readonly place?: Place | undefined;
  readonly [verified]: true;
};

declare const keyed: unique symbol;
/** What names the event on the voters. Only `core/identify.ts` makes one; of an operator's words, `core/given-ids.ts`. */
export interface DeliveryKey {
  /** 128-bit digest of service, route and identity parts, base64url, 22 characters. */
  readonly id: string;
  readonly [keyed]: true;
}

/** What the application answered. `body` is undefined when it was larger than the gateway keeps. */
export interface AppReply {
  readonly status: number;
  /** What it says beside the status, where that is not the usual phrase. */
  readonly reason?: string;
  readonly headers: RawHeaders;
  readonly body: Buffer | undefined;
}

/** The part of the first answer that a done record keeps for `duplicate.reply: stored`. */
export interface StoredReply {
  readonly contentType: string | undefined;
  readonly body: Buffer;
}

/** A done record: the event was handled. */
export interface Done {
  /** Status with which the application completed the event. */
  readonly status: number;
  /** Wall time of completion, epoch milliseconds. */
  readonly wallMs: number;
  /** Trace id of the attempt that completed it, empty without one. */
  readonly traceId: string;
  /** Of that attempt's delivery in the trace; undefined where traces are not exported. */
  readonly spanId?: string | undefined;
  /** `undefined`: nothing was stored; `'omitted'`: it was larger than 4 KiB. */
  readonly reply: StoredReply | 'omitted' | undefined;
  /** Of the body with which it was handled, where the route asks for it (`fingerprintOf`). */
  readonly fingerprint?: string | undefined;
}

export type RejectReason =
  | 'bad_signature'
  | 'missing_signature'
  | 'stale_signature'
  | 'no_identity'
  | 'other_body'
  | 'too_large'
  | 'unsupported_coding'
  | 'bad_request';

/** The gateway refuses the delivery itself; no claim was taken. `message` may go to the sender. */
export interface Rejected {
  readonly kind: 'rejected';
  readonly reason: RejectReason;
  readonly message: string;
}

/** The whole response to a handshake. */
export interface HandshakeAnswer {
  readonly status: number;
  readonly headers: RawHeaders;
  readonly body: Buffer;
}

/** What became of a delivery (closed). `http/answer.ts` has the one table from here to a response. */
export type Outcome =
  /** The application answered success; the event is done. `attempt` 0: forwarded without a claim. */
  | { readonly kind: 'delivered'; readonly reply: AppReply; readonly attempt: number }
  /** The application answered something else; the sender may try again. */
  | { readonly kind: 'refused'; readonly reply: AppReply; readonly attempt: number }
  /** `replay`: not this event was handled before, but its content under another id (`Route.replayGuard`). */
  | { readonly kind: 'duplicate'; readonly done: Done; readonly replay?: true | undefined }
  /** Another attempt holds the event. `retryAfterMs`: what is left of its lock, as far as known. `split`: maybe nobody holds it. */
  | { readonly kind: 'in-progress'; readonly retryAfterMs: number; readonly split?: true }
  | Rejected
  /** A sender made sure of the endpoint; answered as it wants to be, and no event. */
  | { readonly kind: 'handshake'; readonly answer: HandshakeAnswer }
  /** No byte reached the application. */
  | { readonly kind: 'unreachable'; readonly message: string; readonly attempt: number; readonly timedOut?: true }
  /** Bytes were sent, no answer came: the application may or may not have acted. */
  | { readonly kind: 'uncertain'; readonly how: 'timeout' | 'headers_timeout' | 'reset'; readonly attempt: number }
  /** No quorum of voters, or a key that the sender publishes could not be had; or the `queue` did not take it. */
  | { readonly kind: 'unavailable'; readonly why?: 'queue' }
  /** In async mode: it lies in the queue. `attempt` 0: without a claim. */
  | { readonly kind: 'accepted'; readonly attempt: number }
  /** The application has taken a newer version of the same resource: the event is done, and was not forwarded. */
  | { readonly kind: 'stale'; readonly attempt: number }
  | { readonly kind: 'overloaded'; readonly limit: 'memory' | 'in_flight' | 'waiting' };

export type OutcomeKind = Outcome['kind'];

/** What is learnt about a delivery on its way, for its report; durations in milliseconds. */
export interface Trail {
  key?: string;
  attempt?: number;
  claimMs?: number;
  upstreamMs?: number;
  /** `3/5`, as in the header `Hookonce-Elements`. */
  elements?: string;
  traceId?: string;
  spanId?: string;
  /** What would have become of it, and why, on a route that only observes. */
  observed?: OutcomeKind;
  reason?: string;
}

/** First value of a header, by any case of its name, without surrounding white space. */
export function header(headers: RawHeaders, name: string): string | undefined {
  return allHeaders(headers, name)[0];
}

/** Every value of a header, in the order of its lines. */
export function allHeaders(headers: RawHeaders, name: string): string[] {
  const wanted = name.toLowerCase();
  const values: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]!.length === wanted.length && headers[i]!.toLowerCase() === wanted)
      values.push(headers[i + 1]!.trim());
  }
  return values;
}
