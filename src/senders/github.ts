import { textSecret, type Sender } from '../core/sender.ts';

export const github: Sender = {
  name: 'github',
  title: 'GitHub',
  signature: {
    scheme: 'hmac-sha256',
    signature: { header: 'X-Hub-Signature-256', prefix: 'sha256=', encoding: 'hex' },
    signed: '{body}',
  },
  decodeSecret: textSecret,
  identity: {
    parts: [{ from: 'header', names: ['X-GitHub-Delivery'] }],
    bodyHash: false,
    missing: 'reject',
    scope: 'route',
  },
  successStatus: 200,
  timeLimitMs: 10_000,
  retryHorizonMs: 0,
  sources: [
    'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
    'https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks',
    'https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries',
  ],
  cautions: [
    'GitHub never retries by itself: an answer other than 2xx loses the event unless somebody redelivers it. A redelivery keeps its X-GitHub-Delivery.',
    'The signature covers the body only: whoever captures a delivery can replay it under another X-GitHub-Delivery, and it is forwarded as a new event. identity.bodyHash with no other part stops that, and takes two events with equal bodies for one.',
    'A repository hook and an organisation hook for the same change are two deliveries with two ids.',
  ],
};
