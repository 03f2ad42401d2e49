import { createHmac } from 'node:crypto';
import { json, queryValue, type Handshake } from '../core/handshake.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { sharedSecrets } from '../core/signature-items.ts';
import { body, minute, namedBy, second, signedBody } from './rules.ts';

/**
 * The challenge is answered with an HMAC of it, with the key and in the form of the signature of events:
 * without the limit on its characters anybody could have the body of an event signed here.
 */
const challenge = /^[A-Za-z0-9_-]{1,200}={0,2}$/;

/** https://docs.x.com/x-api/webhooks/quickstart (the CRC check) */
const handshake: Handshake = {
  when: 'open',
  methods: ['GET'],
  title: '`GET` with `crc_token`, on registration and every hour; answered with its HMAC',
  answer({ method, target }, { secrets }) {
    const token = queryValue(target, 'crc_token');
    const [secret] = sharedSecrets(secrets);
    if (method !== 'GET' || token === undefined || !challenge.test(token) || !secret) return undefined;
    return json({ response_token: `sha256=${createHmac('sha256', secret).update(token).digest('base64')}` });
  },
};

export const twitterX: Sender = {
  name: 'twitter-x',
  title: 'X (Twitter) Account Activity',
  signature: signedBody('X-Twitter-Webhooks-Signature', 'base64', { prefix: 'sha256=' }),
  secret: "the app's consumer secret; the challenge is answered with the first one",
  decodeSecret: textSecret,
  identity: namedBy(body),
  handshake,
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: 3 * second,
  retryHorizonMs: 5 * minute,
  lastRetryMs: 5 * minute,
  setup: ['Configure the route with the consumer secret, then register the URL: `POST /2/webhooks`.'],
  cautions: [
    'There is no event id: a delivery is named by its body.',
    'The URL must have no port. A failed challenge stops events until the next one that succeeds.',
    'The challenge is answered only if it has letters, digits, `-`, `_` and `=`: its HMAC is made like the signature of events, so it must not be possible to have an event signed.',
  ],
  unverified: ['The signature of events is from third parties.', 'That a retry has the same bytes.'],
  sources: [
    'https://docs.x.com/x-api/webhooks/quickstart',
    'https://developer.x.com/en/docs/twitter-api/enterprise/account-activity-api',
  ],
};
