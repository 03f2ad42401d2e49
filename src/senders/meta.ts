import { sameBytes } from '../core/bytes.ts';
import type { ElementRule } from '../core/elements.ts';
import { plain, queryValue, type Handshake } from '../core/handshake.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { sharedSecrets } from '../core/signature-items.ts';
import { body, day, hour, inEach, namedBy, pointer, second, signedBody } from './rules.ts';

/** https://developers.facebook.com/docs/graph-api/webhooks/getting-started (verification requests) */
const handshake: Handshake = {
  when: 'open',
  methods: ['GET'],
  title: '`GET` with `hub.mode=subscribe`; `hub.challenge` is echoed when `hub.verify_token` is right, otherwise 403',
  token: 'the verify token',
  answer({ method, target }, { secrets, token }) {
    const challenge = queryValue(target, 'hub.challenge');
    if (method !== 'GET' || queryValue(target, 'hub.mode') !== 'subscribe' || challenge === undefined) return undefined;
    const given = Buffer.from(queryValue(target, 'hub.verify_token') ?? '');
    const known = sharedSecrets(token === undefined ? secrets : [token]).some((one) => sameBytes(one, given));
    return known ? plain(challenge) : plain('', 403);
  },
};

/**
 * Messages and what became of them have ids; other changes do not. The times are there because a message that is
 * taken back comes under the id of the message.
 */
const elements: ElementRule = {
  list: pointer('/entry'),
  within: [
    {
      list: pointer('/changes'),
      within: [
        inEach('/value/messages', '/id', '/type', '/timestamp'),
        inEach('/value/statuses', '/id', '/status', '/timestamp'),
      ],
      beside: ['/field', '/value/messaging_product', '/value/metadata', '/value/contacts'].map(pointer),
    },
    inEach('/messaging', '/message/mid', '/timestamp', '/sender/id?', '/recipient/id?'),
  ],
  beside: ['/id', '/uid', '/time'].map(pointer),
};

export const meta: Sender = {
  name: 'meta',
  title: 'Meta: Facebook, Instagram, Messenger, WhatsApp',
  signature: signedBody('X-Hub-Signature-256', 'hex', { prefix: 'sha256=' }),
  secret: 'the app secret; the verify token goes into `handshake.token`',
  decodeSecret: textSecret,
  identity: namedBy(body),
  elements,
  handshake,
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: 5 * second,
  // WhatsApp: 7 days.
  retryHorizonMs: 7 * day,
  lastRetryMs: 36 * hour,
  setup: [
    'App Dashboard → Settings → Basic: copy the app secret.',
    'Configure the route with a verify token of your own in `handshake.token`; then App Dashboard → Webhooks: the URL and this token.',
  ],
  cautions: [
    'There is no delivery id, and one delivery carries many changes: it is named by its body. The application must know messages by their wamid or mid, because a batch that is cut differently is another delivery; or the route says elements: each, which knows messages and their statuses, and nothing else, by their ids.',
    'Without handshake.token the verify token must be one of the secrets, which shows it to whoever sees the dashboard: give it a token of its own.',
    'The legacy header X-Hub-Signature (SHA-1) is not looked at.',
  ],
  unverified: [
    'The time limit (about 5 to 20 seconds).',
    'That a retry has the same bytes.',
    'That wamid or mid, with the time and the kind or status, name a message or its status.',
  ],
  sources: [
    'https://developers.facebook.com/docs/graph-api/webhooks/getting-started',
    'https://github.com/fbsamples/graph-api-webhooks-samples',
  ],
};
