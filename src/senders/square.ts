import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, hour, inJson, minute, namedBy, second } from './rules.ts';

export const square: Sender = {
  name: 'square',
  title: 'Square',
  signature: {
    scheme: 'hmac-sha256',
    signature: { header: 'x-square-hmacsha256-signature', prefix: '', encoding: 'base64' },
    signed: '{url}{body}',
  },
  secret: "the subscription's signature key",
  decodeSecret: textSecret,
  identity: namedBy(inJson('/event_id')),
  successStatus: 200,
  timeLimitMs: 10 * second,
  // The current page says 24 hours, an older one 72.
  retryHorizonMs: 3 * day,
  // 1, 2, 4, 8, 16, 32 and 60 minutes, then 2, 4, 8 and 8 hours, each after the one before.
  lastRetryMs: 24 * hour + 3 * minute,
  setup: [
    'Developer console → the application → Webhooks → Subscriptions → Add: the URL; then copy the signature key.',
    'Configure exactly this URL as `publicUrl`: scheme, port, path and query, byte for byte.',
  ],
  cautions: [
    'The signature has no timestamp and is the same on every retry: only event_id tells a replay, for as long as the event is remembered.',
    'Events come in no particular order.',
  ],
  unverified: ['The time limit of 10 seconds is from an older page.'],
  sources: [
    'https://developer.squareup.com/docs/webhooks/overview',
    'https://developer.squareup.com/docs/webhooks/troubleshooting',
    'https://github.com/square/square-nodejs-sdk (src/wrapper/WebhooksHelper.ts)',
  ],
};
