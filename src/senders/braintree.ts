import { createHash, createHmac } from 'node:crypto';
import { sameBytes } from '../core/bytes.ts';
import type { Received } from '../core/delivery.ts';
import { formField } from '../core/form-field.ts';
import { plain, queryValue, type Handshake } from '../core/handshake.ts';
import type { Sender } from '../core/sender.ts';
import { rejected, sharedSecrets, type Checked, type Circumstances } from '../core/signature-items.ts';
import { day, inForm, namedBy, second } from './rules.ts';

/** A configured secret: `<public key>|<private key>`, or the private key alone. */
function keysOf(secret: Buffer): { publicKey: string | undefined; sign(text: string): string } {
  const parts = secret.toString('utf8').split('|');
  const key = createHash('sha1').update(parts.at(-1)!).digest();
  return {
    publicKey: parts.length === 2 ? parts[0] : undefined,
    sign: (text) => createHmac('sha1', key).update(text).digest('hex'),
  };
}

/** `bt_signature` is `<public key>|<signature>`, one for each key pair of the account, between `&`. */
function check({ body }: Received, { secrets }: Circumstances): Checked {
  const signatures = formField(body, 'bt_signature');
  const payloads = formField(body, 'bt_payload');
  if (signatures.length === 0 || payloads.length === 0)
    return rejected('missing_signature', 'the body has no bt_signature and bt_payload');
  const [payload] = payloads;
  if (signatures.length > 1 || payloads.length > 1 || !/^[A-Za-z0-9+/=\n]+$/.test(payload!))
    return rejected('bad_signature', 'bt_payload is not one text in base64');
  const offered = signatures[0]!
    .split('&')
    .slice(0, 100)
    .map((pair) => Buffer.from(pair.slice(pair.indexOf('|') + 1)));
  // Some form parsers take the newline off that was signed.
  const texts = [payload!, `${payload}\n`];
  const key = sharedSecrets(secrets).find((secret) => {
    const pair = keysOf(secret);
    const right = texts.map((text) => Buffer.from(pair.sign(text)));
    return offered.some((one) => right.some((other) => sameBytes(one, other)));
  });
  return key ? { kind: 'matched', key } : rejected('bad_signature', 'bt_signature does not match');
}

const handshake: Handshake = {
  when: 'open',
  methods: ['GET'],
  title: '`GET` with `bt_challenge`; answered with its signature',
  answer({ method, target }, { secrets }) {
    const challenge = queryValue(target, 'bt_challenge');
    // What is signed here must not be a payload.
    if (method !== 'GET' || challenge === undefined || !/^[a-f0-9]{20,32}$/.test(challenge)) return undefined;
    const pair = sharedSecrets(secrets)
      .map(keysOf)
      .find(({ publicKey }) => publicKey !== undefined);
    return pair && plain(`${pair.publicKey}|${pair.sign(challenge)}`);
  },
};

export const braintree: Sender = {
  name: 'braintree',
  title: 'Braintree',
  signature: { scheme: 'own', title: 'HMAC-SHA1, in form fields, over the payload', usesUrl: false, check },
  secret:
    'an API key pair as `<public key>|<private key>`; with the private key alone, signatures are checked but the challenge is not answered',
  decodeSecret: (text) =>
    /^([^|\s]+\|)?[^|\s]+$/.test(text)
      ? Buffer.from(text)
      : 'is not <public key>|<private key>, or a private key alone',
  identity: namedBy(inForm('bt_payload')),
  handshake,
  successStatus: 200,
  timeLimitMs: 30 * second,
  // Hourly; 3 hours in the sandbox.
  retryHorizonMs: day,
  lastRetryMs: day,
  setup: [
    'Settings → API → API Keys: copy public and private key, and configure the route with them.',
    'Settings → API → Webhooks → Create new webhook: the URL. Braintree asks the challenge.',
  ],
  cautions: ['There is no event id: a delivery is named by its payload, which holds the time of the event.'],
  unverified: ['That a retry has the same payload.'],
  sources: [
    'https://developer.paypal.com/braintree/docs/guides/webhooks/parse',
    'https://github.com/braintree/braintree_node (lib/braintree/webhook_notification_gateway.js)',
  ],
};
