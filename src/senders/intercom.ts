import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { inJson, minute, namedBy, second, signedBody } from './rules.ts';

export const intercom: Sender = {
  name: 'intercom',
  title: 'Intercom',
  signature: signedBody('X-Hub-Signature', 'hex', { prefix: 'sha1=', scheme: 'hmac-sha1' }),
  secret: "the app's client secret",
  decodeSecret: textSecret,
  // delivery_attempts, which is in the body, rises with the retry.
  identity: namedBy(inJson('/id')),
  successStatus: 200,
  timeLimitMs: 5 * second,
  retryHorizonMs: minute,
  lastRetryMs: minute,
  setup: [
    'Developer Hub → the app → Basic information: copy the client secret. Configure → Webhooks: the URL and the topics.',
  ],
  cautions: [
    'More than 1,000 errors in a row within 15 minutes pause a topic for 15 minutes; seven days of errors suspend the subscription of a private app.',
    '429 slows further notifications down.',
  ],
  unverified: [
    'The time limit of 5 seconds, and that there is one retry, after a minute.',
    'That the test notification has an id, and that a retry keeps it.',
    'That 410 unsubscribes.',
  ],
  sources: ['https://developers.intercom.com/docs/webhooks/webhook-notifications'],
};
