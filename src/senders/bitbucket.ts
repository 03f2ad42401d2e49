import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { inHeader, minute, namedBy, second, signedBody } from './rules.ts';

export const bitbucket: Sender = {
  name: 'bitbucket',
  title: 'Bitbucket Cloud',
  signature: signedBody('X-Hub-Signature', 'hex', { prefix: 'sha256=' }),
  secret: 'the secret of the webhook',
  decodeSecret: textSecret,
  identity: namedBy(inHeader('X-Request-UUID')),
  notCovered: ['X-Request-UUID and every other header'],
  replayedBy: 'body',
  successStatus: 200,
  timeLimitMs: 10 * second,
  retryHorizonMs: 10 * minute,
  setup: ['Repository settings → Webhooks → Add webhook: the URL and a secret.'],
  cautions: [
    'Bitbucket sends at most twice more, and only after a status from 500 to 599.',
    'The signature covers the body only: a captured delivery can be replayed under another X-Request-UUID. `replayGuard` stops that; it is off because the kind of event is not in the body, and two kinds may have one.',
  ],
  unverified: ['When the two retries come; ten minutes are assumed.', 'That they keep X-Request-UUID.'],
  sources: [
    'https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/',
    'https://support.atlassian.com/bitbucket-cloud/docs/troubleshoot-webhooks/',
  ],
};
