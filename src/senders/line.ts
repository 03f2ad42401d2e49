import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, inEach, namedIfPossible, second, signedBody } from './rules.ts';

const events = inEach('/events', '/webhookEventId');

export const line: Sender = {
  name: 'line',
  title: 'LINE Messaging API',
  signature: signedBody('x-line-signature', 'base64'),
  secret: 'the channel secret',
  decodeSecret: textSecret,
  // isRedelivery flips in a redelivery, so its body is another one.
  identity: namedIfPossible(events),
  elements: events,
  successStatus: 200,
  timeLimitMs: 2 * second,
  retryHorizonMs: day,
  setup: [
    'LINE Developers Console → the channel → Basic settings: copy the channel secret.',
    'Messaging API → Webhook URL: the URL, then Verify, Use webhook, and Webhook redelivery.',
  ],
  cautions: [
    'LINE sends again only where webhook redelivery is switched on.',
    'One delivery carries several events; it is named by all of them, in their order, unless the route says elements: each.',
    'Verify posts a delivery without events; it is forwarded without a claim.',
  ],
  unverified: ['The time limit of 2 seconds, and for how long LINE sends again.'],
  sources: [
    'https://developers.line.biz/en/docs/messaging-api/receiving-messages/',
    'https://github.com/line/line-openapi (webhook.yml)',
    'https://github.com/line/line-bot-sdk-nodejs (lib/validate-signature.ts)',
  ],
};
