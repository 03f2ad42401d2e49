import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, inJson, minute, namedBy } from './rules.ts';

export const stripe: Sender = {
  name: 'stripe',
  title: 'Stripe',
  signature: {
    scheme: 'hmac-sha256',
    // Of the versions only v1 is a live signature; v0 is for Stripe's own tests and must not be a way round.
    signature: { header: 'Stripe-Signature', separator: ',', prefix: 'v1=', encoding: 'hex' },
    timestamp: { from: { prefix: 't=' }, unit: 's', toleranceMs: 5 * minute },
    signed: '{timestamp}.{body}',
  },
  secret: "the endpoint's signing secret, with its `whsec_`",
  // The whole `whsec_…` text is the key; it is not base64, unlike Standard Webhooks secrets of the same look.
  decodeSecret: textSecret,
  identity: namedBy(inJson('/id')),
  successStatus: 200,
  timeLimitMs: undefined,
  retryHorizonMs: 3 * day,
  lastRetryMs: 3 * day,
  setup: ['Workbench → Webhooks → Create an event destination: the URL; then reveal the signing secret.'],
  cautions: [
    'Stripe publishes no time limit.',
    'A resend from the dashboard (15 days) or the command line (30 days) carries the same id, and does not cancel automatic retries: a retention of 31 days covers it.',
    'The same event reaches every endpoint with the same id: use one route per endpoint.',
    'Sometimes two events with two ids describe one change; data.object.id and type together would name it.',
    'Events come in no particular order, and `created` does not tell it.',
    'When a secret is rolled, the old one signs too for up to 24 hours: configure both, or either.',
  ],
  sources: [
    'https://docs.stripe.com/webhooks (signatures, retries, duplicate events)',
    'https://github.com/stripe/stripe-node/blob/master/src/Webhooks.ts',
  ],
};
