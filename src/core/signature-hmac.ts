/** Signatures by a shared secret: HMAC over a template of timestamp, id and body. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { allHeaders, type RawHeaders, type Received, type Rejected } from './delivery.ts';
import { afterPrefix, onlyLine, rejected } from './signature-items.ts';
import { isNear, timestampText, type TimestampRule } from './signature-timestamp.ts';
import { containsDelimiter, signedPieces } from './signed-template.ts';

export type { TimestampRule };

export interface HmacRule {
  readonly scheme: 'hmac-sha256';
  readonly signature: SignatureHeader;
  /** Required exactly when `signed` names `{timestamp}`. */
  readonly timestamp?: TimestampRule | undefined;
  /** Header of the signed message id; required exactly when `signed` names `{id}`. */
  readonly idHeader?: string | undefined;
  /** What is signed: literal text around `{body}`, `{timestamp}` and `{id}`, e.g. `v0:{timestamp}:{body}`. */
  readonly signed: string;
}

/** `Stripe-Signature: t=1,v1=ab,v1=cd` is separator `,` and prefix `v1=`; `sha256=ab` is prefix `sha256=` alone. */
export interface SignatureHeader {
  readonly header: string;
  /** Stands before each signature; items that start otherwise are of another version and prove nothing. */
  readonly prefix: string;
  /** Between the items of the header; without one the whole value is one item. */
  readonly separator?: string | undefined;
  /** hex is taken in either case; base64 is the padded standard alphabet only. */
  readonly encoding: 'hex' | 'base64';
}

/** What a delivery says about its signature, not yet believed. */
interface Claimed {
  /** In the order of the header; so many are looked at. */
  readonly signatures: readonly string[];
  readonly timestamp: string | undefined;
  readonly id: string | undefined;
}

/** Senders in rotation send two or three. */
const maxSignatures = 100;

type Checked = { readonly kind: 'matched'; readonly signedId: string | undefined } | Rejected;

/** The window is judged last: `stale_signature` always means a right signature, that is clocks or a replay. */
export function checkHmac(rule: HmacRule, secrets: readonly Buffer[], received: Received, wallMs: number): Checked {
  const claimed = readHeaders(rule, received.headers);
  if ('kind' in claimed) return claimed;
  if (!matchesAny(rule, secrets, claimed, received.body)) {
    return rejected('bad_signature', `the signature in header ${rule.signature.header} does not match`);
  }
  if (rule.timestamp !== undefined && !isNear(rule.timestamp, claimed.timestamp ?? '', wallMs)) {
    const seconds = rule.timestamp.toleranceMs / 1000;
    return rejected('stale_signature', `the signature's timestamp is more than ${seconds} s away from now`);
  }
  return { kind: 'matched', signedId: claimed.id };
}

/** Whether a delivery carries everything that this rule reads. */
export function hasAllHeaders(rule: HmacRule, headers: RawHeaders): boolean {
  const timestamp = rule.timestamp?.from;
  const names = [
    rule.signature.header,
    rule.idHeader,
    timestamp && 'header' in timestamp ? timestamp.header : undefined,
  ];
  return names.every((name) => name === undefined || allHeaders(headers, name).some((value) => value !== ''));
}

function readHeaders(rule: HmacRule, headers: RawHeaders): Claimed | Rejected {
  const { header, prefix, separator } = rule.signature;
  const line = onlyLine(headers, header);
  if (typeof line !== 'string') return line;
  const items = separator === undefined ? [line] : line.split(separator).map((item) => item.trim());
  const timestamp = rule.timestamp && timestampText(rule.timestamp, items, headers);
  if (typeof timestamp === 'object') return timestamp;
  const id = rule.idHeader === undefined ? undefined : onlyLine(headers, rule.idHeader);
  if (typeof id === 'object') return id;
  if (id !== undefined && containsDelimiter(id, rule.signed)) {
    return rejected(
      'bad_signature',
      `header ${rule.idHeader} contains what separates it from the rest of what is signed`,
    );
  }
  const signatures = afterPrefix(items, prefix).slice(0, maxSignatures);
  if (signatures.length === 0)
    return rejected('bad_signature', `header ${header} has no signature that starts with ${prefix}`);
  return { signatures, timestamp, id };
}

/** Every secret is tried on every signature, in constant time and without stopping at the first match. */
function matchesAny(rule: HmacRule, secrets: readonly Buffer[], claimed: Claimed, body: Buffer): boolean {
  const hex = rule.signature.encoding === 'hex';
  const offered = claimed.signatures.map((text) => Buffer.from(hex ? text.toLowerCase() : text));
  let matched = false;
  for (const secret of secrets) {
    // An empty key is one that everybody knows.
    if (secret.length === 0) continue;
    const expected = Buffer.from(sign(rule, secret, claimed, body));
    for (const one of offered) matched = sameBytes(one, expected) || matched;
  }
  return matched;
}

/** The right signature, encoded as the header has it. */
function sign(rule: HmacRule, secret: Buffer, { timestamp = '', id = '' }: Claimed, body: Buffer): string {
  const hmac = createHmac('sha256', secret);
  for (const piece of signedPieces(rule.signed)) {
    if (piece === '{body}') hmac.update(body);
    // Header text is what latin1 makes of the wire's bytes: this gives the bytes back.
    else if (piece === '{timestamp}') hmac.update(timestamp, 'latin1');
    else if (piece === '{id}') hmac.update(id, 'latin1');
    else hmac.update(piece, 'utf8');
  }
  return hmac.digest(rule.signature.encoding);
}

/** A length that differs is a mismatch like any other; it is no secret. */
const sameBytes = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);
