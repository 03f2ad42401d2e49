import { decodeWhsec } from '../core/secret-whsec.ts';
import type { Sender } from '../core/sender.ts';
import { standardSignature } from './standard-webhooks.ts';

export const svix: Sender = {
  name: 'svix',
  title: 'Svix, and what is sent through it (Clerk, Resend, Brex)',
  // White-label senders use `webhook-*`; where both families are complete, `svix-*` is the one that counts.
  signature: { scheme: 'first-of', rules: [standardSignature('svix'), standardSignature('webhook')] },
  decodeSecret: decodeWhsec,
  identity: { parts: [{ from: 'signed-id' }], bodyHash: false, missing: 'reject', scope: 'route' },
  successStatus: 200,
  timeLimitMs: 15_000,
  // 5 s, 5 min, 30 min, then 2, 5, 10 and 10 hours, each after the one before.
  retryHorizonMs: 27 * 3_600_000 + 35 * 60_000 + 5_000,
  lastRetryMs: 27 * 3_600_000 + 35 * 60_000 + 5_000,
  sources: [
    'https://docs.svix.com/receiving/verifying-payloads/how-manual',
    'https://docs.svix.com/retries',
    'https://docs.svix.com/idempotency',
  ],
  cautions: [
    'Five days of failures disable the endpoint; redirects are failures.',
    'The application can stop retries with the response header webhook-delivery: abort-message, and switch the endpoint off with disable; both are passed on.',
  ],
};
