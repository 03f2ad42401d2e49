import { decodeWhsec } from '../core/secret-whsec.ts';
import type { Sender } from '../core/sender.ts';
import { hour, minute, namedBy, second, signedId } from './rules.ts';
import { standardSignature } from './standard-webhooks.ts';

export const svix: Sender = {
  name: 'svix',
  title: 'Svix, and what is sent through it (Resend, Brex)',
  // White-label senders use `webhook-*`; where both families are complete, `svix-*` is the one that counts.
  signature: { scheme: 'first-of', rules: [standardSignature('svix'), standardSignature('webhook')] },
  secret: "the endpoint's signing secret (`whsec_…`)",
  decodeSecret: decodeWhsec,
  identity: namedBy(signedId),
  successStatus: 200,
  timeLimitMs: 15 * second,
  // 5 s, 5 min, 30 min, then 2, 5, 10 and 10 hours, each after the one before.
  retryHorizonMs: 27 * hour + 35 * minute + 5 * second,
  lastRetryMs: 27 * hour + 35 * minute + 5 * second,
  setup: ['In the portal that the sender offers: add an endpoint with the URL, then copy its signing secret.'],
  cautions: [
    'Five days of failures disable the endpoint; redirects are failures.',
    'The application can stop retries with the response header webhook-delivery: abort-message, and switch the endpoint off with disable; both are passed on.',
  ],
  unverified: ['That the old secret signs for 24 hours after a rotation.'],
  sources: [
    'https://docs.svix.com/receiving/verifying-payloads/how-manual',
    'https://docs.svix.com/retries',
    'https://docs.svix.com/idempotency',
  ],
};

export const clerk: Sender = {
  ...svix,
  name: 'clerk',
  title: 'Clerk',
  setup: ['Configure → Webhooks → Add Endpoint: the URL; then copy the signing secret of the endpoint.'],
  sources: ['https://clerk.com/docs/webhooks/overview', ...svix.sources],
};
