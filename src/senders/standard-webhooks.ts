import type { KeyObject } from 'node:crypto';
import { ed25519Secret } from '../core/secret.ts';
import { decodeWhsec } from '../core/secret-whsec.ts';
import type { Sender } from '../core/sender.ts';
import type { TemplateRule } from '../core/signature-template.ts';
import { hour, minute, namedBy, second, signedId } from './rules.ts';

/** Signatures as the Standard Webhooks specification has them, under headers that begin with `family`. */
export const standardSignature = (family: string): TemplateRule => ({
  scheme: 'hmac-sha256',
  signature: { header: `${family}-signature`, separator: ' ', prefix: 'v1,', encoding: 'base64' },
  timestamp: { from: { header: `${family}-timestamp` }, unit: 's', toleranceMs: 5 * minute },
  idHeader: `${family}-id`,
  signed: '{id}.{timestamp}.{body}',
});

const symmetric = standardSignature('webhook');
const asymmetric: TemplateRule = {
  ...symmetric,
  scheme: 'ed25519',
  signature: { ...symmetric.signature, prefix: 'v1a,' },
};

function standardSecret(text: string): Buffer | KeyObject | string {
  if (text.startsWith('whpk_')) return ed25519Secret(text.slice('whpk_'.length));
  if (text.startsWith('whsk_')) return "is the sender's private key; it needs the public one, whpk_…";
  return decodeWhsec(text);
}

export const standardWebhooks: Sender = {
  name: 'standard-webhooks',
  title: 'Standard Webhooks',
  signature: { scheme: 'any-of', rules: [symmetric, asymmetric] },
  secret: 'the secret (`whsec_…`) for `v1` signatures, the public key (`whpk_…`) for `v1a` ones',
  decodeSecret: standardSecret,
  identity: namedBy(signedId),
  successStatus: 200,
  timeLimitMs: 15 * second,
  // 5 s, 5 min, 30 min, then 2, 5, 10, 14, 20 and 24 hours, each after the one before.
  retryHorizonMs: 75 * hour + 35 * minute + 5 * second,
  lastRetryMs: 75 * hour + 35 * minute + 5 * second,
  setup: ['As the sender describes it; what it needs is the URL, what it gives is a `whsec_` secret or a `whpk_` key.'],
  cautions: [
    'Time limit and retries are what the specification advises (15 to 30 seconds, three days); a sender may do otherwise.',
    'A secret only checks `v1` signatures and a public key only `v1a` ones; an HMAC made with the public key proves nothing.',
    'An answer of 410 asks the sender to disable the endpoint.',
  ],
  sources: ['https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md'],
};
