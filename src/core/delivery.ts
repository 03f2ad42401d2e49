/**
 * The vocabulary: what a delivery is on its way through the gateway. Each step takes what only the
 * step before it can make, so that nothing unverified is ever identified and nothing unidentified claimed:
 *
 *     Received ──verify──▶ Verified ──identify──▶ DeliveryKey ──claim──▶ Lease ──deliver──▶ Outcome
 *
 * Durations and instants inside the program are milliseconds; `…Ms` instants are on the monotonic
 * clock unless the name says `wall`.
 */

/** Header lines exactly as they came: name, value, name, value… Case, order and repeats are kept. */
export type RawHeaders = readonly string[];

/** One HTTP request on a route, its body complete and untouched. */
export interface Received {
  readonly method: string;
  /** The request target byte for byte, query included. */
  readonly target: string;
  readonly headers: RawHeaders;
  readonly body: Buffer;
}

declare const verified: unique symbol;
/** A delivery whose signature held. Only `core/verify.ts` makes one. */
export type Verified = Received & {
  /** The message id that the signature covers, where the sender signs one. */
  readonly signedId?: string | undefined;
  readonly [verified]: true;
};

declare const keyed: unique symbol;
/** What names the event on the voters. Only `core/identify.ts` makes one. */
export interface DeliveryKey {
  /** 128-bit digest of service, route and identity parts, base64url, 22 characters. */
  readonly id: string;
  readonly [keyed]: true;
}

/** What the application answered. `body` is undefined when it was larger than the gateway keeps. */
export interface AppReply {
  readonly status: number;
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
  /** `undefined`: nothing was stored; `'omitted'`: it was larger than 4 KiB. */
  readonly reply: StoredReply | 'omitted' | undefined;
}

export type RejectReason =
  | 'bad_signature'
  | 'missing_signature'
  | 'stale_signature'
  | 'no_identity'
  | 'too_large'
  | 'unsupported_coding'
  | 'bad_request';

/** The gateway refuses the delivery itself; no claim was taken. `message` may go to the sender. */
export interface Rejected {
  readonly kind: 'rejected';
  readonly reason: RejectReason;
  readonly message: string;
}

/** What became of a delivery (closed). `http/answer.ts` has the one table from here to a response. */
export type Outcome =
  /** The application answered success; the event is done. `attempt` 0: forwarded without a claim. */
  | { readonly kind: 'delivered'; readonly reply: AppReply; readonly attempt: number }
  /** The application answered something else; the sender may try again. */
  | { readonly kind: 'refused'; readonly reply: AppReply; readonly attempt: number }
  | { readonly kind: 'duplicate'; readonly done: Done }
  /** Another attempt holds the event. `retryAfterMs`: what is left of its lock, as far as known. */
  | { readonly kind: 'in-progress'; readonly retryAfterMs: number }
  | Rejected
  /** No byte reached the application. */
  | { readonly kind: 'unreachable'; readonly message: string; readonly attempt: number }
  /** Bytes were sent, no answer came: the application may or may not have acted. */
  | { readonly kind: 'uncertain'; readonly how: 'timeout' | 'reset'; readonly attempt: number }
  /** No quorum of voters. */
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'overloaded'; readonly limit: 'memory' | 'in_flight' | 'waiting' };

export type OutcomeKind = Outcome['kind'];

/** What is learnt about a delivery on its way, for its report; durations in milliseconds. */
export interface Trail {
  key?: string;
  attempt?: number;
  claimMs?: number;
  upstreamMs?: number;
  traceId?: string;
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
    if (headers[i]!.length === wanted.length && headers[i]!.toLowerCase() === wanted) values.push(headers[i + 1]!.trim());
  }
  return values;
}
