import { allHeaders } from '../core/delivery.ts';
import { empty, type Handshake } from '../core/handshake.ts';
import { jsonLookup } from '../core/json-value.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { sharedSecrets } from '../core/signature-items.ts';
import { matchingKey } from '../core/signature-match.ts';
import { day, inJson, namedBy, signedBody } from './rules.ts';

const prefix = 'sha256=';

/**
 * The request that creates a subscription brings the key of all later signatures, and is signed with it: it
 * proves nothing but that it was not garbled. So it changes nothing here; the operator decides about it.
 */
const handshake: Handshake = {
  when: 'open',
  methods: [],
  title: 'the request with the `verification_token`; answered 200',
  answer({ headers, body }, { secrets }) {
    const token = jsonLookup(body).value(['verification_token']);
    if (token?.kind !== 'string' || token.text === '') return undefined;
    const offered = allHeaders(headers, 'X-Notion-Signature').map((line) => line.replace(prefix, ''));
    const key = Buffer.from(token.text);
    if (offered.length !== 1 || !matchingKey('hmac-sha256', 'hex', [key], offered, () => [body])) return undefined;
    if (sharedSecrets(secrets).some((secret) => secret.equals(key))) return empty(200);
    return {
      ...empty(200),
      tell: 'Notion sent a verification token that is none of the secrets of this route; handshake.reveal shows it, for as long as it is set',
      reveal: token.text,
    };
  },
};

export const notion: Sender = {
  name: 'notion',
  title: 'Notion',
  signature: signedBody('X-Notion-Signature', 'hex', { prefix }),
  secret: 'the verification token (`secret_…`) that Notion sends when the subscription is created',
  decodeSecret: textSecret,
  identity: namedBy(inJson('/id')),
  handshake,
  successStatus: 200,
  timeLimitMs: undefined,
  retryHorizonMs: day,
  lastRetryMs: day,
  setup: [
    'Configure the route with any secret for the time being, and `handshake: {reveal: true}`.',
    'The integration → Webhooks → Create a subscription: the URL. Notion posts the verification token, and the gateway writes it to its log once per request.',
    'Paste it into Notion, which knows whether it is the right one; make it the secret of the route, and take `reveal` out again.',
  ],
  cautions: [
    'Anybody can post a verification token. It is never taken for a secret by itself.',
    'Payloads hold ids only; the application fetches what it needs.',
  ],
  unverified: [
    'Up to 8 retries over about 24 hours.',
    'That a retry keeps its id, and that attempt_number is in the body.',
  ],
  sources: [
    'https://developers.notion.com/reference/webhooks',
    'https://github.com/makenotion/notion-sdk-js (src/webhooks.ts)',
  ],
};
