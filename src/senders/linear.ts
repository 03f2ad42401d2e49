import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { hour, inHeader, minute, namedBy, pointer, second, signedBody } from './rules.ts';

export const linear: Sender = {
  name: 'linear',
  title: 'Linear',
  signature: {
    ...signedBody('Linear-Signature', 'hex'),
    // In the signed body; the header Linear-Timestamp is not signed.
    timestamp: { from: { json: pointer('/webhookTimestamp') }, unit: 'ms', toleranceMs: minute },
  },
  secret: "the webhook's signing secret",
  decodeSecret: textSecret,
  identity: namedBy(inHeader('Linear-Delivery')),
  notCovered: ['Linear-Delivery and every other header'],
  // A retry has another webhookTimestamp, so another body; a replay has a minute.
  replayedBy: 'body',
  guarded: true,
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: 5 * second,
  retryHorizonMs: 7 * hour + minute,
  lastRetryMs: 7 * hour + minute,
  setup: ['Settings → API → Webhooks → New webhook: the URL; then copy the signing secret.'],
  cautions: [
    'The signature does not cover Linear-Delivery: within a minute a captured delivery can be replayed under another id. `replayGuard`, which is on, stops that.',
    'The window is the minute of Linear’s own library.',
  ],
  unverified: [
    'Time limit, and retries after 1 minute, 1 hour and 6 hours.',
    'That a retry keeps its Linear-Delivery and renews webhookTimestamp.',
  ],
  sources: [
    'https://linear.app/developers/webhooks',
    'https://github.com/linear/linear (packages/sdk/src/webhooks/client.ts)',
  ],
};
