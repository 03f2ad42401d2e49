import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { hour, inJson, minute, namedBy, second, signedBody } from './rules.ts';

export const klarna: Sender = {
  name: 'klarna',
  title: 'Klarna',
  signature: {
    scheme: 'any-of',
    rules: [signedBody('Klarna-Signature', 'hex'), signedBody('Klarna-Signature', 'base64')],
  },
  secret: 'the signing key, as it was shown when it was created',
  decodeSecret: textSecret,
  identity: namedBy(inJson('/metadata/event_id')),
  successStatus: 200,
  timeLimitMs: undefined,
  // 10 s, 2 min and 15 min, then 3, 6 and 12 hours, taken as each after the one before.
  retryHorizonMs: 21 * hour + 17 * minute + 10 * second,
  lastRetryMs: 21 * hour + 17 * minute + 10 * second,
  setup: ['Partner Portal → Webhooks: create a signing key and keep it, then a webhook with the URL and this key.'],
  cautions: [
    '200, 201, 202 and 204 are success.',
    'Klarna-Signing-Key-Id is not looked at: every configured key is tried.',
    'Klarna reaches the ports 443 and 8443 only. Older products have other notifications.',
  ],
  unverified: [
    'Whether the signature is written in hexadecimal digits or base64: both are taken.',
    'That the signing key is used as the text that is shown.',
    'That event_id stays in a retry, and the time limit.',
  ],
  sources: [
    'https://docs.klarna.com/klarna-network-distribution/setup-your-integration/connection-configuration/setup-your-webhooks/',
  ],
};
