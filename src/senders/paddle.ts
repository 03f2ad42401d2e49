import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, inJson, namedBy, second } from './rules.ts';

export const paddle: Sender = {
  name: 'paddle',
  title: 'Paddle Billing',
  signature: {
    scheme: 'hmac-sha256',
    signature: { header: 'Paddle-Signature', separator: ';', prefix: 'h1=', encoding: 'hex' },
    timestamp: { from: { prefix: 'ts=' }, unit: 's', toleranceMs: 5 * second },
    signed: '{timestamp}:{body}',
  },
  secret: "the notification destination's secret key, with its `pdl_ntfset_`",
  decodeSecret: textSecret,
  identity: namedBy(inJson('/event_id')),
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: 5 * second,
  retryHorizonMs: 3 * day,
  lastRetryMs: 3 * day,
  setup: ['Developer tools → Notifications → New destination: type webhook, the URL; then copy its secret key.'],
  cautions: [
    'The window is the five seconds of Paddle’s own libraries. Behind a proxy that queues, or with a clock that is not kept, set `tolerance` of the route to more: event_id stops copies all the same.',
    'Exactly 200 is success. notification_id is new with every replay; event_id stays.',
    'While a key is rotated the header carries several h1; any of them may be the right one.',
  ],
  unverified: ['That a replay keeps its event_id; that a sandbox retries 3 times in 15 minutes.'],
  sources: [
    'https://developer.paddle.com/webhooks/about/signature-verification',
    'https://developer.paddle.com/webhooks/about/respond-to-webhooks',
    'https://github.com/PaddleHQ/paddle-node-sdk',
    'https://github.com/PaddleHQ/paddle-python-sdk',
  ],
};
