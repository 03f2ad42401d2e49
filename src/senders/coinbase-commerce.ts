import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, inJson, namedBy, signedBody } from './rules.ts';

export const coinbaseCommerce: Sender = {
  name: 'coinbase-commerce',
  title: 'Coinbase Commerce',
  signature: signedBody('X-CC-Webhook-Signature', 'hex'),
  secret: 'the webhook shared secret',
  decodeSecret: textSecret,
  // The attempt number is in the body, and rises with each retry.
  identity: namedBy(inJson('/event/id')),
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: undefined,
  retryHorizonMs: 3 * day,
  lastRetryMs: 3 * day,
  setup: ['Settings → Webhook subscriptions → Add an endpoint: the URL; then show the shared secret.'],
  cautions: ['Exactly 200 is success.'],
  sources: [
    'https://docs.cloud.coinbase.com/commerce/docs/webhooks',
    'https://docs.cloud.coinbase.com/commerce/docs/webhooks-fields-and-security',
    'https://github.com/coinbase/coinbase-commerce-node (lib/Webhook.js)',
  ],
};
