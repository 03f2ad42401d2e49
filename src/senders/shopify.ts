import type { HmacRule } from '../core/signature-hmac.ts';
import { textSecret, type Sender } from '../core/sender.ts';

const signedBy = (header: string): HmacRule => ({
  scheme: 'hmac-sha256',
  signature: { header, prefix: '', encoding: 'base64' },
  signed: '{body}',
});

export const shopify: Sender = {
  name: 'shopify',
  title: 'Shopify',
  // The newer Events family has headers without `X-`; where both are present it is the one that counts.
  signature: { scheme: 'first-of', rules: [signedBy('Shopify-Hmac-Sha256'), signedBy('X-Shopify-Hmac-Sha256')] },
  decodeSecret: textSecret,
  identity: {
    parts: [{ from: 'header', names: ['Shopify-Webhook-Id', 'X-Shopify-Webhook-Id'] }],
    bodyHash: false,
    missing: 'reject',
    scope: 'route',
  },
  successStatus: 200,
  timeLimitMs: 5_000,
  retryHorizonMs: 4 * 3_600_000,
  lastRetryMs: 4 * 3_600_000,
  sources: [
    'https://shopify.dev/docs/apps/build/webhooks/verify-deliveries',
    'https://shopify.dev/changelog/updates-to-webhook-retry-mechanism',
    'https://github.com/Shopify/shopify-app-js (packages/apps/shopify-api/lib/webhooks/validate.ts)',
  ],
  cautions: [
    'The key is the client secret of the app; hooks made in the store admin are signed with another one. After rotating the client secret the old one may sign for up to an hour: configure both.',
    'Eight failures in a row delete a subscription that was made through the Admin API.',
    'X-Shopify-Event-Id is shared by all topics that one action causes: as an identity it drops real events.',
    'The signature covers the body only: a captured delivery can be replayed under another webhook id.',
  ],
};
