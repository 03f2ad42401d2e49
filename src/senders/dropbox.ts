import { plain, queryValue, type Handshake } from '../core/handshake.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { minute, namedIfPossible, second, signedBody } from './rules.ts';

/** https://www.dropbox.com/developers/reference/webhooks (verification request) */
const handshake: Handshake = {
  when: 'open',
  methods: ['GET'],
  title: '`GET` with `challenge`, which is echoed as plain text',
  answer({ method, target }) {
    const challenge = queryValue(target, 'challenge');
    return method === 'GET' && challenge !== undefined ? plain(challenge) : undefined;
  },
};

export const dropbox: Sender = {
  name: 'dropbox',
  title: 'Dropbox',
  signature: signedBody('X-Dropbox-Signature', 'hex'),
  secret: "the app's secret",
  decodeSecret: textSecret,
  identity: namedIfPossible(),
  handshake,
  successStatus: 200,
  timeLimitMs: 10 * second,
  retryHorizonMs: 10 * minute,
  lastRetryMs: 10 * minute,
  setup: ['App Console → the app → Webhooks: the URL; the app secret is on the same page.'],
  cautions: [
    'A delivery says only whose files have changed: nothing names it, and two equal ones are two changes. Every delivery is forwarded without a claim; the application reads what is new by its cursor.',
  ],
  unverified: ['The time limit; retries over about ten minutes are from an older page.'],
  sources: ['https://www.dropbox.com/developers/reference/webhooks', 'https://github.com/dropbox/mdwebhook (app.py)'],
};
