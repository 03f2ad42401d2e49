/**
 * Whether a delivery really comes from its sender: pure functions of rule, secrets, bytes and wall time.
 * Each scheme has a file of its own; this one only chooses.
 */
import type { Key, Received, Rejected, Verified } from './delivery.ts';
import type { KeyRequest } from './ports.ts';
import type { Checked, Circumstances } from './signature-items.ts';
import { appliesTo, checkTemplate, type TemplateRule } from './signature-template.ts';
import type { TimestampRule } from './signature-timestamp.ts';
import { checkToken, type TokenRule } from './signature-token.ts';

/** How a route's deliveries are signed: data, compiled from a sender preset or from configuration. */
export type SignatureRule =
  /** Nothing is checked. Only ever written down on purpose: there is no default that leads here. */
  { readonly scheme: 'none' } | TemplateRule | TokenRule | OwnRule | FirstOf | AnyOf;

/** A scheme that is like no other: one pure function, in the sender's own file. */
export interface OwnRule {
  readonly scheme: 'own';
  /** The scheme in words, for the sender's page. */
  readonly title: string;
  readonly usesUrl: boolean;
  /** The window that `check` looks at, for the sender's page. */
  readonly timestamp?: TimestampRule | undefined;
  check(received: Received, at: Circumstances): Checked;
  /**
   * Where the sender publishes the key for this delivery; undefined when the secrets are enough. The address
   * comes out of the delivery, which nobody has verified yet: it must be one of the sender's own.
   */
  published?(received: Received, secrets: readonly Key[]): KeyRequest | Rejected | undefined;
}

/**
 * A sender with several families of headers, the preferred one first. The first family whose headers
 * are all there decides alone: a wrong signature in it is not made good by a right one in another.
 */
export interface FirstOf {
  readonly scheme: 'first-of';
  readonly rules: readonly [TemplateRule, ...TemplateRule[]];
}

/** A sender that signs in several ways at once, for receivers with different kinds of keys: one right signature is enough. */
export interface AnyOf {
  readonly scheme: 'any-of';
  readonly rules: readonly [TemplateRule, ...TemplateRule[]];
}

/**
 * Checks the signature over the bytes as they came. Any of the secrets may have signed (rotation on the
 * receiver's side), and any of the signatures may be the right one (rotation on the sender's).
 * `wallMs`: now, epoch milliseconds. Never throws for anything that a delivery may contain.
 */
export function verify(
  rule: SignatureRule,
  secrets: readonly Key[],
  received: Received,
  wallMs: number,
  more: Pick<Circumstances, 'url' | 'published'> = {},
): Verified | Rejected {
  const checked = check(rule, received, { ...more, secrets, wallMs });
  if (checked.kind === 'rejected') return checked;
  return { ...received, signedId: checked.signedId, signedBy: checked.key } as Verified;
}

function check(rule: SignatureRule, received: Received, at: Circumstances): Checked {
  switch (rule.scheme) {
    case 'none':
      return { kind: 'matched' };
    case 'token':
      return checkToken(rule, received, at);
    case 'own':
      return rule.check(received, at);
    case 'first-of': {
      const first = rule.rules.find((one) => appliesTo(one, received.headers));
      return checkTemplate(first ?? rule.rules[0], received, at);
    }
    case 'any-of': {
      const all = rule.rules.map((one) => checkTemplate(one, received, at));
      return all.find(({ kind }) => kind === 'matched') ?? all.find(isStale) ?? all[0]!;
    }
    case 'hmac-sha1':
    case 'hmac-sha256':
    case 'hmac-sha512':
    case 'sha256':
    case 'ed25519':
    case 'ecdsa-p256':
      return checkTemplate(rule, received, at);
  }
}

const isStale = (checked: Checked): boolean => checked.kind === 'rejected' && checked.reason === 'stale_signature';

/** The templates that a rule is made of. */
export function templatesOf(rule: SignatureRule): readonly TemplateRule[] {
  if ('rules' in rule) return rule.rules;
  return 'signed' in rule ? [rule] : [];
}

/** Whether the signature covers the URL, so that the route must know it. */
export function usesUrl(rule: SignatureRule): boolean {
  return rule.scheme === 'own' ? rule.usesUrl : templatesOf(rule).some(({ signed }) => signed.includes('{url}'));
}
