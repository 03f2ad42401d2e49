import type { Sender } from '../core/sender.ts';
import { textSecret } from '../core/secret.ts';
import { firstOf, inHeader, namedBy, second, signedBody } from './rules.ts';

export const github: Sender = {
  name: 'github',
  title: 'GitHub',
  signature: signedBody('X-Hub-Signature-256', 'hex', { prefix: 'sha256=' }),
  secret: 'the secret of the webhook',
  decodeSecret: textSecret,
  identity: namedBy(inHeader('X-GitHub-Delivery')),
  notCovered: ['X-GitHub-Delivery and every other header'],
  replayedBy: 'body',
  // Of each kind of event apart: that an issue was closed does not make a comment on it stale.
  ordering: {
    resource: [inHeader('X-GitHub-Event'), firstOf('/pull_request/node_id', '/issue/node_id')],
    version: firstOf('/pull_request/updated_at', '/issue/updated_at'),
    type: 'timestamp',
  },
  successStatus: 200,
  timeLimitMs: 10 * second,
  retryHorizonMs: 0,
  setup: [
    'Settings → Webhooks → Add webhook of the repository, organisation or app: the URL, a secret, and one of the two content types; both are fine.',
    'GitHub sends a signed `ping` at once; it is an event like any other and goes to the application.',
  ],
  cautions: [
    'GitHub never retries by itself: an answer other than 2xx loses the event unless somebody redelivers it. A redelivery keeps its X-GitHub-Delivery.',
    'The signature covers the body only: whoever captures a delivery can replay it under another X-GitHub-Delivery, and it is forwarded as a new event. `replayGuard` stops that; it is off because two events may have one body (the same workflow_dispatch or repository_dispatch twice), and the second would be lost.',
    'A repository hook and an organisation hook for the same change are two deliveries with two ids.',
  ],
  sources: [
    'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
    'https://docs.github.com/en/webhooks/using-webhooks/best-practices-for-using-webhooks',
    'https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries',
  ],
};
