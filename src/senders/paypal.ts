import { verify, X509Certificate, type KeyObject } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { fromBase64 } from '../core/bytes.ts';
import type { Received, Rejected } from '../core/delivery.ts';
import type { KeyRequest } from '../core/ports.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { onlyLine, rejected, sharedSecrets, type Checked, type Circumstances } from '../core/signature-items.ts';
import { day, inJson, namedBy } from './rules.ts';

/** Only PayPal's own certificates: https, its domain, its path, nothing behind it. */
const certificateUrl = /^https:\/\/([a-z0-9-]+\.)*paypal\.com\/v1\/notifications\/certs\/[A-Za-z0-9_-]+$/;

/** https://developer.paypal.com/api/rest/webhooks/rest (verify the signature yourself) */
function check({ headers, body }: Received, { secrets, published = '' }: Circumstances): Checked {
  const values = ['ID', 'TIME', 'SIG'].map((name) => onlyLine(headers, `PAYPAL-TRANSMISSION-${name}`));
  const algorithm = onlyLine(headers, 'PAYPAL-AUTH-ALGO');
  const wrong = [...values, algorithm].find((value) => typeof value !== 'string');
  if (wrong !== undefined) return wrong;
  const [id, time, text] = values as [string, string, string];
  const signature = fromBase64(text);
  const key = certified(published);
  if (algorithm !== 'SHA256withRSA' || signature === undefined || key === undefined || `${id}${time}`.includes('|'))
    return rejected('bad_signature', 'the transmission is not signed as PayPal signs');
  const webhookId = sharedSecrets(secrets).find((secret) =>
    verify('sha256', signed(id, time, secret, body), key, signature),
  );
  if (webhookId === undefined) return rejected('bad_signature', 'the transmission signature does not match');
  return { kind: 'matched', key: webhookId, signedId: id };
}

/** What a transmission signs. */
export function signed(id: string, time: string, webhookId: Buffer, body: Buffer): Buffer {
  return Buffer.from(`${id}|${time}|${webhookId.toString('latin1')}|${crc32(body)}`, 'latin1');
}

function certified(pem: string): KeyObject | undefined {
  try {
    const key = new X509Certificate(pem).publicKey;
    return key.asymmetricKeyType === 'rsa' ? key : undefined;
  } catch {
    return undefined;
  }
}

function published({ headers }: Received): KeyRequest | Rejected {
  const url = onlyLine(headers, 'PAYPAL-CERT-URL');
  if (typeof url !== 'string') return url;
  return certificateUrl.test(url) ? { url } : rejected('bad_signature', 'the certificate is not at paypal.com');
}

export const paypal: Sender = {
  name: 'paypal',
  title: 'PayPal',
  signature: {
    scheme: 'own',
    title:
      'RSA with SHA-256, by a certificate from paypal.com, over transmission id, time, webhook id and the CRC-32 of the body',
    usesUrl: false,
    check,
    published,
  },
  secret: 'the webhook id: the id of your own webhook in the app, which is part of what PayPal signs',
  decodeSecret: textSecret,
  identity: namedBy(inJson('/id')),
  notCovered: ['the body, but for its CRC-32'],
  replayedBy: 'signed-id',
  guarded: true,
  successStatus: 200,
  timeLimitMs: undefined,
  retryHorizonMs: 3 * day,
  lastRetryMs: 3 * day,
  setup: [
    'Apps & Credentials → the app → Webhooks → Add Webhook: the URL and the events; then copy its webhook id.',
    'Let the gateway reach paypal.com over https: it reads the certificate there, once a day.',
  ],
  cautions: [
    'The signature covers a CRC-32 of the body, and bodies with a given CRC-32 can be made: who has seen one delivery can put another body under it. `replayGuard`, which is on, lets each transmission id through once; where it matters, have the application fetch the event from PayPal.',
    'While the certificate cannot be read, deliveries are answered 503, and PayPal sends them again.',
  ],
  unverified: ['That a transmission id is new with every send.'],
  sources: [
    'https://developer.paypal.com/api/rest/webhooks/rest/',
    'https://github.com/paypal/PayPal-Python-SDK (paypalrestsdk/notifications.py)',
    'https://github.com/paypal/paypal-rest-api-specifications (notifications_webhooks_v1.json)',
  ],
};
