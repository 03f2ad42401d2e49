import { textSecret } from '../core/secret.ts';
import { decodeWhsec } from '../core/secret-whsec.ts';
import type { Sender } from '../core/sender.ts';
import { inHeader, namedBy, second, signedId } from './rules.ts';
import { standardSignature } from './standard-webhooks.ts';

export const gitlab: Sender = {
  name: 'gitlab',
  title: 'GitLab, secret token',
  signature: { scheme: 'token', from: { header: 'X-Gitlab-Token' } },
  secret: 'the secret token of the webhook',
  decodeSecret: textSecret,
  identity: namedBy(inHeader('webhook-id', 'Idempotency-Key')),
  notCovered: ['anything: the token proves that the sender knows it, and no more'],
  replayedBy: 'body',
  successStatus: 200,
  timeLimitMs: 10 * second,
  retryHorizonMs: 0,
  setup: ['Settings → Webhooks: the URL and a secret token of your own.'],
  cautions: [
    'Nothing is signed: who has seen one delivery knows the token and can send anything. Use `gitlab-signing-token` where your GitLab offers it.',
    'GitLab does not retry after an HTTP error. 4 failures in a row stop a webhook for a while, 40 for good.',
    'X-Gitlab-Webhook-UUID is new with every send and names nothing.',
  ],
  unverified: ['That a resend keeps its Idempotency-Key.', 'The time limit of 10 seconds is that of gitlab.com.'],
  sources: [
    'https://docs.gitlab.com/user/project/integrations/webhooks/',
    'https://gitlab.com/gitlab-org/gitlab (app/services/web_hook_service.rb)',
  ],
};

export const gitlabSigningToken: Sender = {
  ...gitlab,
  name: 'gitlab-signing-token',
  title: 'GitLab, signing token',
  signature: standardSignature('webhook'),
  secret: 'the signing token of the webhook (`whsec_…`)',
  decodeSecret: decodeWhsec,
  identity: namedBy(signedId),
  notCovered: undefined,
  replayedBy: undefined,
  setup: ['Settings → Webhooks: the URL; generate a signing token and copy it.'],
  cautions: gitlab.cautions.slice(1),
  sources: ['https://gitlab.com/gitlab-org/gitlab/-/merge_requests/230944', ...gitlab.sources],
};
