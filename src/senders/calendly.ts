import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, inJson, minute, namedBy, second } from './rules.ts';

export const calendly: Sender = {
  name: 'calendly',
  title: 'Calendly',
  signature: {
    scheme: 'hmac-sha256',
    signature: { header: 'Calendly-Webhook-Signature', separator: ',', prefix: 'v1=', encoding: 'hex' },
    timestamp: { from: { prefix: 't=' }, unit: 's', toleranceMs: 3 * minute },
    signed: '{timestamp}.{body}',
  },
  secret: 'the signing key of the webhook subscription',
  decodeSecret: textSecret,
  identity: namedBy(inJson('/event'), inJson('/created_at'), inJson('/payload/uri')),
  successStatus: 200,
  timeLimitMs: 15 * second,
  retryHorizonMs: day,
  lastRetryMs: day,
  setup: ['Create the webhook subscription by the API, with the URL and a signing_key of your own.'],
  cautions: [
    'There is no event id: a delivery is named by event, created_at and payload.uri.',
    'After a day of failures the subscription is disabled and must be made anew.',
  ],
  unverified: [
    'The window of three minutes and the time limit of 15 seconds.',
    'That these three fields name an event, and stay in a retry.',
  ],
  sources: [
    'https://developer.calendly.com/api-docs/ZG9jOjM2MzE2MDM4-webhook-signatures',
    'https://community.calendly.com/developer-faq-62/why-am-i-not-receiving-webhook-data-how-does-a-webhook-become-disabled-548',
  ],
};
