import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { hour, inJson, namedBy, namedIfPossible, second, signedBody } from './rules.ts';

export const mollieNextgen: Sender = {
  name: 'mollie-nextgen',
  title: 'Mollie, next-gen webhooks',
  // While a secret is rotated there is a line for each.
  signature: signedBody('X-Mollie-Signature', 'hex', { prefix: 'sha256=', several: 'lines' }),
  secret: 'the signing secret of the webhook',
  decodeSecret: textSecret,
  identity: namedBy(inJson('/id')),
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: 15 * second,
  retryHorizonMs: 26 * hour,
  lastRetryMs: 26 * hour,
  setup: ['Developers → Webhooks → Create: the URL and the events; then copy the signing secret.'],
  cautions: [
    'A delivery without a signature is refused. Mollie’s own library takes it for a classic webhook; those have a preset of their own, `mollie`.',
  ],
  unverified: ['Retries, taken from classic webhooks.', 'That id names the event and stays in a retry.'],
  sources: [
    'https://docs.mollie.com/reference/webhooks-new',
    'https://github.com/mollie/mollie-api-php (src/Webhooks/SignatureValidator.php)',
  ],
};

export const mollie: Sender = {
  name: 'mollie',
  title: 'Mollie, classic webhooks',
  signature: { scheme: 'none' },
  secret: 'none: classic webhooks are not signed',
  decodeSecret: textSecret,
  identity: namedIfPossible(),
  notCovered: ['anything: a delivery is only the id of what has changed'],
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: 15 * second,
  // 10 calls: 1, 2, 4, 8, 16 and 29 minutes, then 1, 2 and 22 hours.
  retryHorizonMs: 26 * hour,
  lastRetryMs: 26 * hour,
  setup: ['The `webhookUrl` of a payment or another resource: the URL.'],
  cautions: [
    'Nothing is signed, and the body is only an id: two equal deliveries may be a retry or a second change. Every delivery is forwarded without a claim, and the application fetches the resource from Mollie, as Mollie asks.',
    'Exactly 200 is success, also for an id that the application does not know.',
  ],
  unverified: ['The schedule is from a copy of the documentation of 2024.'],
  sources: ['https://docs.mollie.com/overview/webhooks', 'https://github.com/mollie/api-documentation'],
};
