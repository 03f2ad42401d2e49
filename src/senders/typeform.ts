import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { hour, inJson, minute, namedBy, second, signedBody } from './rules.ts';

export const typeform: Sender = {
  name: 'typeform',
  title: 'Typeform',
  signature: signedBody('Typeform-Signature', 'base64', { prefix: 'sha256=' }),
  secret: 'the secret of the webhook',
  decodeSecret: textSecret,
  identity: namedBy(inJson('/event_id')),
  successStatus: 200,
  timeLimitMs: 30 * second,
  // 5, 10 and 20 minutes, then 1, 2, 3 and 4 hours; after 408, 423, 429 and 503 every few minutes for 10 hours.
  retryHorizonMs: 10 * hour + 35 * minute,
  lastRetryMs: 10 * hour,
  setup: ['The form → Connect → Webhooks: the URL; edit it to set a secret of your own.'],
  cautions: [
    '404 and 410 disable the webhook at once, with no retry: keep the application from answering them while it is rolled out.',
  ],
  unverified: ['That a retry keeps its event_id.'],
  sources: [
    'https://www.typeform.com/developers/webhooks/',
    'https://www.typeform.com/developers/webhooks/secure-your-webhooks/',
  ],
};
