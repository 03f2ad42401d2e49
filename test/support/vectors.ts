/** The published and generated vectors of `test/fixtures/provider-vectors.json`, and how they are put to a preset. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Key, Received, Verified } from '../../src/core/delivery.ts';
import { parsePublicUrl, publicUrlOf } from '../../src/core/public-url.ts';
import type { Sender } from '../../src/core/sender.ts';
import { verify } from '../../src/core/verify.ts';

export type Headers = Record<string, string | string[]>;

interface Common {
  readonly id: string;
  readonly provider: string;
  readonly why: string;
}

export interface VerifyVector extends Common {
  readonly kind: 'verify';
  readonly valid: boolean;
  readonly gateway_should_accept?: boolean;
  readonly either_verdict_is_safe?: boolean;
  readonly method: string;
  readonly url?: string;
  readonly secret: string | string[] | null;
  readonly public_key?: string;
  readonly public_key_hex?: string;
  readonly public_key_spki_der_base64?: string;
  readonly webhook_id?: string;
  readonly jwk?: Record<string, unknown>;
  readonly cert_pem?: string;
  readonly headers: Headers;
  readonly body?: string | null;
  readonly body_base64?: string;
  readonly body_recipe?: { prefix: string; repeat: string; times: number; suffix: string; sha256: string };
  /** Epoch seconds; null: the time does not matter. */
  readonly now: number | null;
}

export interface IdentityVector extends Common {
  readonly kind: 'identity';
  readonly delivery_a: { headers: Headers; body: string };
  readonly delivery_b: { headers: Headers; body: string };
  readonly same_event: boolean;
}

export interface HandshakeVector extends Common {
  readonly kind: 'handshake';
  readonly valid: boolean;
  readonly method: string;
  readonly url: string;
  readonly secret: string | null;
  readonly headers: Headers;
  readonly body: string;
  readonly now?: number;
  readonly expected_response: {
    status: number;
    content_type?: string;
    headers?: Record<string, string>;
    body?: string;
  };
}

export interface SigningInputVector extends Common {
  readonly kind: 'signing-input';
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly webhook_id: string;
  readonly expected_signing_string: string;
}

export type Vector = VerifyVector | IdentityVector | HandshakeVector | SigningInputVector;

export const vectors = JSON.parse(
  readFileSync(new URL('../fixtures/provider-vectors.json', import.meta.url), 'utf8'),
) as readonly Vector[];

/** The route's secrets as an operator would write them. */
export function secretTexts(vector: VerifyVector): string[] {
  const { provider, secret, public_key, public_key_hex, public_key_spki_der_base64, webhook_id, jwk } = vector;
  // The topics of the messages in the fixtures.
  if (provider === 'aws-sns') return ['arn:aws:sns:us-west-2:123456789012:MyTopic'];
  const key = public_key ?? public_key_hex ?? public_key_spki_der_base64 ?? webhook_id ?? (jwk && JSON.stringify(jwk));
  return key === undefined ? [secret ?? []].flat() : [key];
}

/** Undefined: the gateway does not start with such a secret. */
export function keysOf(sender: Sender, texts: readonly string[]): Key[] | undefined {
  const keys = texts.map((text) => sender.decodeSecret(text));
  return keys.some((key) => typeof key === 'string') ? undefined : (keys as Key[]);
}

export function bodyOf(vector: VerifyVector): Buffer {
  if (typeof vector.body === 'string') return Buffer.from(vector.body);
  if (vector.body_base64 !== undefined) return Buffer.from(vector.body_base64, 'base64');
  const { prefix, repeat, times, suffix, sha256 } = vector.body_recipe!;
  const body = Buffer.from(prefix + repeat.repeat(times) + suffix);
  assert.equal(createHash('sha256').update(body).digest('hex'), sha256);
  return body;
}

/** As the delivery arrives: its URL's path and query are the target. */
export function deliveryOf(vector: VerifyVector): Received {
  const target = vector.url?.replace(/^https?:\/\/[^/]*/, '') ?? '/hook';
  return received(vector.headers, bodyOf(vector), vector.method, target);
}

export function received(headers: Headers, body: Buffer | string, method = 'POST', target = '/hook'): Received {
  const lines = Object.entries(headers).flatMap(([name, value]) => [value].flat().flatMap((line) => [name, line]));
  return { method, target, headers: lines, body: Buffer.from(body as string) };
}

/** The verdict, with the key that the sender publishes where the rule asks for one. */
export function verified(sender: Sender, vector: VerifyVector, delivery = deliveryOf(vector)): Verified | undefined {
  const keys = keysOf(sender, secretTexts(vector));
  if (keys === undefined) return undefined;
  const rule = sender.signature;
  const asked = rule.scheme === 'own' ? rule.published?.(delivery, keys) : undefined;
  if (asked !== undefined && 'kind' in asked) return undefined;
  const path = delivery.target.split('?', 1)[0]!;
  const url = vector.url && publicUrlOf({ path, publicUrl: parsePublicUrl(vector.url) }, delivery.target);
  const result = verify(rule, keys, delivery, (vector.now ?? 0) * 1000, { url, published: asked && vector.cert_pem });
  return 'kind' in result ? undefined : result;
}
