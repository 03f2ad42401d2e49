import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, inJson, namedBy, second, signedBody } from './rules.ts';

export const docusign: Sender = {
  name: 'docusign',
  title: 'DocuSign Connect',
  // One header for each key of the account, up to a hundred.
  signature: signedBody('X-DocuSign-Signature', 'base64', { several: 'numbered' }),
  secret: 'a Connect key',
  decodeSecret: textSecret,
  identity: namedBy({
    from: 'first-of',
    ways: [[inJson('/data/envelopeId'), inJson('/event'), inJson('/generatedDateTime')], [{ from: 'body' }]],
  }),
  successStatus: 200,
  timeLimitMs: 100 * second,
  retryHorizonMs: 15 * day,
  lastRetryMs: 15 * day,
  setup: [
    'Settings → Connect → Connect Keys: add a secret key and copy it.',
    'Connect → Configurations: the URL, JSON as the data format, and Include HMAC Signature.',
  ],
  cautions: [
    'With several Connect keys there are several signatures; one that is right is enough, so take a key that was given up out of DocuSign.',
    'There is no event id: JSON is named by envelope, event and the time it was generated, XML by its body.',
  ],
  unverified: [
    'The time limit of 100 seconds, and retries for up to 15 days.',
    'That a retry keeps generatedDateTime.',
  ],
  sources: [
    'https://developers.docusign.com/platform/webhooks/connect/hmac/',
    'https://github.com/docusign/code-examples-node (validateWebhookMessage.js)',
  ],
};
