import { createHash, createPublicKey, verify, type KeyObject } from 'node:crypto';
import { fromHex, sameBytes } from '../core/bytes.ts';
import type { Received, Rejected } from '../core/delivery.ts';
import type { KeyRequest } from '../core/ports.ts';
import type { Sender } from '../core/sender.ts';
import { onlyLine, rejected, sharedSecrets, type Checked, type Circumstances } from '../core/signature-items.ts';
import { staleness, type TimestampRule } from '../core/signature-timestamp.ts';
import { day, inJson, maybeInJson, minute, namedBy, second, signedId } from './rules.ts';

const issued: TimestampRule = { from: { header: 'Plaid-Verification' }, unit: 's', toleranceMs: 5 * minute };
const wrong = rejected('bad_signature', 'Plaid-Verification is not an ES256 token of Plaid for this body');

interface Token {
  readonly kid: string;
  readonly iat: number;
  readonly hash: Buffer;
  readonly signed: Buffer;
  readonly signature: Buffer;
}

/** https://plaid.com/docs/api/webhooks/webhook-verification/ */
function check(received: Received, { secrets, wallMs, published }: Circumstances): Checked {
  const token = tokenOf(received);
  if ('kind' in token) return token;
  const hash = createHash('sha256').update(received.body).digest();
  const key = keyOf(configured(secrets, token.kid) ?? published, token.kid);
  const right =
    key !== undefined && verify('sha256', token.signed, { key, dsaEncoding: 'ieee-p1363' }, token.signature);
  if (!right || !sameBytes(hash, token.hash)) return wrong;
  return staleness(issued, String(token.iat), wallMs) ?? { kind: 'matched', signedId: String(token.iat) };
}

/** The parts of the token, not yet believed. Of the algorithms only Plaid's own: "none" and HS256 would ask for no key, or for a public one as a secret. */
function tokenOf({ headers }: Received): Token | Rejected {
  const line = onlyLine(headers, 'Plaid-Verification');
  if (typeof line !== 'string') return line;
  const [, head = '', claims = '', signature = ''] = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/.exec(line) ?? [];
  const { alg, kid } = decoded(head);
  const { iat, request_body_sha256: text } = decoded(claims);
  const hash = typeof text === 'string' ? fromHex(text) : undefined;
  const bytes = Buffer.from(signature, 'base64url');
  if (alg !== 'ES256' || typeof kid !== 'string' || !Number.isSafeInteger(iat) || hash === undefined) return wrong;
  // Other letters at the end could stand for the same bytes.
  if (bytes.toString('base64url') !== signature || bytes.length !== 64) return wrong;
  return { kid, iat: iat as number, hash, signed: Buffer.from(`${head}.${claims}`), signature: bytes };
}

function decoded(base64url: string): Record<string, unknown> {
  return parsed(Buffer.from(base64url, 'base64url').toString());
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** A JWK as it is configured, or as Plaid answers it: within `key`, and with the time at which it was given up. */
function keyOf(text: string | undefined, kid: string): KeyObject | undefined {
  const outer = parsed(text ?? '');
  const jwk = (typeof outer['key'] === 'object' && outer['key'] !== null ? outer['key'] : outer) as Record<
    string,
    unknown
  >;
  const { kty, crv, x, y, expired_at: expired } = jwk;
  if (jwk['kid'] !== kid || kty !== 'EC' || crv !== 'P-256' || (expired !== null && expired !== undefined))
    return undefined;
  try {
    return createPublicKey({ key: { kty, crv, x: String(x), y: String(y) }, format: 'jwk' });
  } catch {
    return undefined;
  }
}

const texts = (secrets: Circumstances['secrets']): string[] =>
  sharedSecrets(secrets).map((secret) => secret.toString());
const configured = (secrets: Circumstances['secrets'], kid: string): string | undefined =>
  texts(secrets).find((text) => keyOf(text, kid) !== undefined);

const credentials = /^(sandbox:)?([0-9a-f]{16,64}):([^\s:]+)$/;

function published(received: Received, secrets: Circumstances['secrets']): KeyRequest | Rejected | undefined {
  const token = tokenOf(received);
  if ('kind' in token) return token;
  if (configured(secrets, token.kid) !== undefined) return undefined;
  const [, sandbox, clientId, secret] =
    texts(secrets)
      .map((text) => credentials.exec(text))
      .find((found) => found !== null) ?? [];
  if (clientId === undefined || secret === undefined || token.kid.length > 100) return wrong;
  const url = `https://${sandbox === undefined ? 'production' : 'sandbox'}.plaid.com/webhook_verification_key/get`;
  return { url, question: { client_id: clientId, secret, key_id: token.kid } };
}

export const plaid: Sender = {
  name: 'plaid',
  title: 'Plaid',
  signature: {
    scheme: 'own',
    title: 'a JWT (ES256) in Plaid-Verification, over the SHA-256 of the body',
    usesUrl: false,
    timestamp: issued,
    check,
    published,
  },
  secret:
    'API credentials as `<client_id>:<secret>` (`sandbox:<client_id>:<secret>` for the sandbox), with which the gateway asks Plaid for its key; or the key itself, a JWK in JSON',
  decodeSecret: (text) => {
    if (credentials.test(text)) return Buffer.from(text);
    const { kid } = parsed(text);
    const right = typeof kid === 'string' && keyOf(text, kid) !== undefined;
    return right ? Buffer.from(text) : 'is neither <client_id>:<secret> nor a valid JWK on the curve P-256';
  },
  identity: namedBy(inJson('/webhook_type'), inJson('/webhook_code'), maybeInJson('/item_id'), signedId),
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: 10 * second,
  retryHorizonMs: day,
  lastRetryMs: day,
  setup: [
    'Configure the route with the client_id and secret of the environment, and let the gateway reach plaid.com over https.',
    'Give the URL as `webhook` when you create a Link token, or in the dashboard.',
  ],
  cautions: [
    'There is no event id: a delivery is named by type, code, item and the second in which it was signed. A retry that is signed anew is forwarded again.',
    'With a JWK as the only secret, deliveries are refused as soon as Plaid signs with another key.',
    'While the key cannot be had, deliveries are answered 503, and Plaid sends them again.',
  ],
  unverified: ['Time limit and retries (30 s, then four times as long, for a day).', 'Whether a retry is signed anew.'],
  sources: [
    'https://plaid.com/docs/api/webhooks/webhook-verification/',
    'https://support.plaid.com/hc/en-us/articles/360041410794-Webhook-verification-example',
    'https://github.com/plaid/plaid-openapi (2020-09-14.yml)',
  ],
};
