import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, inHeader, namedBy, second, signedBody } from './rules.ts';

export const razorpay: Sender = {
  name: 'razorpay',
  title: 'Razorpay',
  signature: signedBody('X-Razorpay-Signature', 'hex'),
  secret: 'the webhook secret',
  decodeSecret: textSecret,
  identity: namedBy(inHeader('x-razorpay-event-id')),
  notCovered: ['x-razorpay-event-id and every other header'],
  replayedBy: 'body',
  guarded: true,
  successStatus: 200,
  timeLimitMs: 5 * second,
  retryHorizonMs: day,
  lastRetryMs: day,
  setup: ['Account & Settings → Webhooks → Add New Webhook: the URL, a secret of your own, the events.'],
  cautions: [
    'The signature covers the body only: a captured delivery can be replayed under another event id. `replayGuard`, which is on, stops that.',
    'After a change of the secret, retries of older events are still signed with the old one: configure both for a day.',
    'A day of failures disables the webhook.',
  ],
  sources: [
    'https://razorpay.com/docs/webhooks/',
    'https://github.com/razorpay/razorpay-node (lib/utils/razorpay-utils.js)',
  ],
};
