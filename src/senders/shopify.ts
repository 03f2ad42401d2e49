import type { Sender } from '../core/sender.ts';
import { textSecret } from '../core/secret.ts';
import { hour, inHeader, inJson, namedBy, second, signedBody } from './rules.ts';

export const shopify: Sender = {
  name: 'shopify',
  title: 'Shopify',
  // The newer Events family has headers without `X-`; where both are present it is the one that counts.
  signature: {
    scheme: 'first-of',
    rules: [signedBody('Shopify-Hmac-Sha256', 'base64'), signedBody('X-Shopify-Hmac-Sha256', 'base64')],
  },
  secret: "the app's client secret; for hooks made in the store admin the secret shown there",
  decodeSecret: textSecret,
  identity: namedBy(inHeader('Shopify-Webhook-Id', 'X-Shopify-Webhook-Id')),
  notCovered: ['the webhook id, the topic, the shop domain and every other header'],
  replayedBy: 'body',
  // The id names its kind as well (gid://shopify/Order/1); one shop's ids say nothing of another's.
  ordering: {
    resource: [inJson('/admin_graphql_api_id'), inHeader('Shopify-Shop-Domain', 'X-Shopify-Shop-Domain')],
    version: inJson('/updated_at'),
    type: 'timestamp',
  },
  successStatus: 200,
  timeLimitMs: 5 * second,
  retryHorizonMs: 4 * hour,
  lastRetryMs: 4 * hour,
  setup: [
    'Subscribe in `shopify.app.toml` or by the Admin API, or in the store admin under Settings → Notifications → Webhooks.',
  ],
  cautions: [
    'The key is the client secret of the app; hooks made in the store admin are signed with another one. After rotating the client secret the old one may sign for up to an hour: configure both.',
    'Eight failures in a row delete a subscription that was made through the Admin API.',
    'X-Shopify-Event-Id is shared by all topics that one action causes: as an identity it drops real events.',
    'The signature covers the body only: a captured delivery can be replayed under another webhook id. `replayGuard` stops that; it is off because two topics may have one body (an order that is created and updated), and the second would be lost.',
  ],
  sources: [
    'https://shopify.dev/docs/apps/build/webhooks/verify-deliveries',
    'https://shopify.dev/changelog/updates-to-webhook-retry-mechanism',
    'https://github.com/Shopify/shopify-app-js (packages/apps/shopify-api/lib/webhooks/validate.ts)',
  ],
};
