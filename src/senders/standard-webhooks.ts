import { decodeWhsec } from '../core/secret-whsec.ts';
import type { Sender } from '../core/sender.ts';
import type { HmacRule } from '../core/signature-hmac.ts';

/** Signatures as the Standard Webhooks specification has them, under headers that begin with `family`. */
export const standardSignature = (family: string): HmacRule => ({
  scheme: 'hmac-sha256',
  signature: { header: `${family}-signature`, separator: ' ', prefix: 'v1,', encoding: 'base64' },
  timestamp: { from: { header: `${family}-timestamp` }, unit: 's', toleranceMs: 300_000 },
  idHeader: `${family}-id`,
  signed: '{id}.{timestamp}.{body}',
});

export const standardWebhooks: Sender = {
  name: 'standard-webhooks',
  title: 'Standard Webhooks',
  signature: standardSignature('webhook'),
  decodeSecret: decodeWhsec,
  identity: { parts: [{ from: 'signed-id' }], bodyHash: false, missing: 'reject', scope: 'route' },
  successStatus: 200,
  timeLimitMs: 15_000,
  // 5 s, 5 min, 30 min, then 2, 5, 10, 14, 20 and 24 hours, each after the one before.
  retryHorizonMs: 75 * 3_600_000 + 35 * 60_000 + 5_000,
  lastRetryMs: 75 * 3_600_000 + 35 * 60_000 + 5_000,
  sources: ['https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md'],
  cautions: [
    'Time limit and retries are what the specification advises (15 to 30 seconds, three days); a sender may do otherwise.',
    'Only symmetric signatures (v1) are checked; asymmetric ones (v1a) are passed over, and a whpk_ key is refused.',
    'An answer of 410 asks the sender to disable the endpoint.',
  ],
};
