import { createHmac } from 'node:crypto';
import { sameBytes, utf8Text } from '../core/bytes.ts';
import type { Received } from '../core/delivery.ts';
import { jsonLookup } from '../core/json-value.ts';
import { hexSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { rejected, sharedSecrets, type Checked, type Circumstances } from '../core/signature-items.ts';
import { body, day, inEach, inJson, namedBy, pointer, second, signedBody } from './rules.ts';

const items = pointer('/notificationItems');
const signature = '/additionalData/hmacSignature';
const signedFields = [
  '/pspReference',
  '/originalReference',
  '/merchantAccountCode',
  '/merchantReference',
  '/amount/value',
  '/amount/currency',
  '/eventCode',
  '/success',
];

/** Each item is signed by itself, over eight fields without any escaping; all of them must be right, by one key. */
function check(received: Received, { secrets }: Circumstances): Checked {
  // Bytes that are no UTF-8 would read alike, and differ.
  if (utf8Text(received.body) === undefined) return rejected('bad_signature', 'the body is not UTF-8');
  const json = jsonLookup(received.body);
  const count = json.length(items) ?? 0;
  const signed = Array.from({ length: count }, (_, i) => {
    const item = [...items, String(i), 'NotificationRequestItem'];
    const text = (at: string): string => json.value([...item, ...pointer(at)])?.text ?? '';
    return { offered: Buffer.from(text(signature)), message: signedFields.map(text).join(':') };
  });
  if (count === 0 || signed.some(({ offered }) => offered.length === 0))
    return rejected('missing_signature', 'not every notification item has a signature');
  const key = sharedSecrets(secrets).find((secret) => {
    const right = signed.map(({ offered, message }) =>
      sameBytes(offered, Buffer.from(createHmac('sha256', secret).update(message).digest('base64'))),
    );
    return !right.includes(false);
  });
  return key
    ? { kind: 'matched', key }
    : rejected('bad_signature', 'the signature of a notification item does not match');
}

const events = inEach(
  '/notificationItems',
  '/NotificationRequestItem/pspReference',
  '/NotificationRequestItem/eventCode',
  '/NotificationRequestItem/success',
  '/NotificationRequestItem/merchantAccountCode?',
);

export const adyen: Sender = {
  name: 'adyen',
  title: 'Adyen payments (standard webhook)',
  signature: {
    scheme: 'own',
    title: 'HMAC-SHA256, in the body, over eight fields of each item',
    usesUrl: false,
    check,
  },
  secret: 'the HMAC key of the webhook, 64 hexadecimal digits',
  decodeSecret: hexSecret,
  identity: namedBy(events),
  elements: events,
  notCovered: ['`eventDate`, `reason`, `paymentMethod`, and all of `additionalData`'],
  replayedBy: undefined,
  successStatus: 200,
  timeLimitMs: 10 * second,
  retryHorizonMs: 30 * day,
  lastRetryMs: 30 * day,
  setup: [
    'Customer Area → Developers → Webhooks → + Webhook → Standard webhook: the URL, JSON, and generate an HMAC key.',
  ],
  cautions: [
    'The signature covers eight fields: do not rely on eventDate, reason or additionalData without asking Adyen.',
    'Fields are joined by colons without escaping: where they meet is not signed.',
    'A delivery with several items is named by all of them, in their order, unless the route says elements: each; one wrong signature refuses it as a whole.',
    'New events wait behind one that fails: an application that answers errors stops the queue of its endpoint.',
    'After generating a new key, deliveries may be signed with the old one for a while: configure both.',
  ],
  unverified: ['That pspReference, eventCode and success name an event.'],
  sources: [
    'https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures',
    'https://docs.adyen.com/development-resources/webhooks/troubleshoot',
    'https://help.adyen.com/knowledge/ecommerce-integrations/webhooks/how-do-i-set-up-webhooks',
    'https://github.com/Adyen/adyen-node-api-library (src/utils/hmacValidator.ts)',
  ],
};

export const adyenPlatform: Sender = {
  name: 'adyen-platform',
  title: 'Adyen platforms and management',
  signature: signedBody('HmacSignature', 'base64'),
  secret: 'the HMAC key of the webhook, in hexadecimal digits',
  decodeSecret: hexSecret,
  identity: namedBy({
    from: 'first-of',
    ways: [[inJson('/data/id'), inJson('/type'), inJson('/timestamp')], [body]],
  }),
  successStatus: 200,
  timeLimitMs: 10 * second,
  retryHorizonMs: 30 * day,
  lastRetryMs: 30 * day,
  setup: ['Customer Area → Developers → Webhooks → + Webhook: the kind of webhook, the URL, and generate an HMAC key.'],
  cautions: ['There is no event id: a delivery is named by data.id, type and timestamp, or else its body.'],
  unverified: [
    'That these three fields name an event, and stay in a retry.',
    'Time limit and retries, taken from payments.',
  ],
  sources: [
    'https://docs.adyen.com/development-resources/webhooks/verify-hmac-signatures',
    'https://github.com/Adyen/adyen-openapi (NotificationConfigurationService-v6.yaml)',
  ],
};
