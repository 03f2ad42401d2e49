/**
 * Whether a delivery really comes from its sender: pure functions of rule, secrets, bytes and wall time.
 * Each scheme has a file of its own; this one only chooses.
 */
import type { Received, Rejected, Verified } from './delivery.ts';
import { checkHmac, hasAllHeaders, type HmacRule } from './signature-hmac.ts';

/** How a route's deliveries are signed: data, compiled from a sender preset or from configuration. */
export type SignatureRule =
  /** Nothing is checked. Only ever written down on purpose: there is no default that leads here. */
  { readonly scheme: 'none' } | HmacRule | FirstOf;

/**
 * A sender with several families of headers, the preferred one first. The first family whose headers
 * are all there decides alone: a wrong signature in it is not made good by a right one in another.
 */
export interface FirstOf {
  readonly scheme: 'first-of';
  readonly rules: readonly [HmacRule, ...HmacRule[]];
}

/**
 * Checks the signature over the bytes as they came. Any of the secrets may have signed (rotation on the
 * receiver's side), and any of the signatures may be the right one (rotation on the sender's).
 * `wallMs`: now, epoch milliseconds. Never throws for anything that a delivery may contain.
 */
export function verify(
  rule: SignatureRule,
  secrets: readonly Buffer[],
  received: Received,
  wallMs: number,
): Verified | Rejected {
  switch (rule.scheme) {
    case 'none':
      return received as Verified;
    case 'hmac-sha256':
      return verifyHmac(rule, secrets, received, wallMs);
    case 'first-of':
      return verifyHmac(
        rule.rules.find((one) => hasAllHeaders(one, received.headers)) ?? rule.rules[0],
        secrets,
        received,
        wallMs,
      );
  }
}

function verifyHmac(
  rule: HmacRule,
  secrets: readonly Buffer[],
  received: Received,
  wallMs: number,
): Verified | Rejected {
  const checked = checkHmac(rule, secrets, received, wallMs);
  return checked.kind === 'rejected' ? checked : ({ ...received, signedId: checked.signedId } as Verified);
}
