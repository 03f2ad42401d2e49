import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { hour, inJson, namedBy, second, signedBody } from './rules.ts';

export const checkoutCom: Sender = {
  name: 'checkout-com',
  title: 'Checkout.com',
  signature: signedBody('Cko-Signature', 'hex'),
  secret: "the signature key of the workflow's webhook action",
  decodeSecret: textSecret,
  identity: namedBy(inJson('/id')),
  successStatus: 200,
  timeLimitMs: 10 * second,
  // 5, 10, 15 and 30 minutes, then 1, 4, 12 and 12 hours, each after the one before.
  retryHorizonMs: 30 * hour,
  lastRetryMs: 30 * hour,
  setup: ['Dashboard → Developers → Workflows: a webhook action with the URL and a signature key.'],
  cautions: ['Events come in no particular order. A resend from the dashboard is another delivery of the same event.'],
  unverified: ['That id stays in retries and resends.', 'The time limit of 10 seconds is from an older page.'],
  sources: [
    'https://www.checkout.com/docs/workflows',
    'https://www.checkout.com/docs/developer-resources/webhooks/manage-webhooks/set-up-your-webhook-receiver',
  ],
};
