import { empty, type Handshake } from '../core/handshake.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { inHeader, minute, namedBy, signedBody } from './rules.ts';

/** WC_Webhook::deliver_ping */
const handshake: Handshake = {
  when: 'open',
  methods: [],
  title: 'the unsigned form `webhook_id=…` when the webhook is saved; answered 200',
  answer: ({ method, body }) =>
    method === 'POST' && body.length < 40 && /^webhook_id=[0-9]+$/.test(body.toString('latin1'))
      ? empty(200)
      : undefined,
};

/** As wp_specialchars_decode(…, ENT_QUOTES) has it: what WooCommerce signs with, however the secret is shown or stored. */
const characters: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"' },
  ...{ '38': '&', '60': '<', '62': '>', '34': '"', '39': "'" },
  ...{ x26: '&', x3c: '<', x3e: '>', x22: '"', x27: "'" },
};
const withoutEntities = (text: string): string =>
  text.replace(
    /&(?:(amp|lt|gt|quot)|#0*(38|60|62|34|39)|#(x)0*(26|3c|3e|22|27));/gi,
    (_, name = '', decimal = '', x = '', hex = '') => characters[`${name}${decimal}${x}${hex}`.toLowerCase()]!,
  );

export const woocommerce: Sender = {
  name: 'woocommerce',
  title: 'WooCommerce',
  signature: signedBody('X-WC-Webhook-Signature', 'base64'),
  secret: 'the secret of the webhook; whether `&` or, as the page shows it, `&amp;`',
  decodeSecret: (text) => textSecret(withoutEntities(text)),
  identity: namedBy(inHeader('X-WC-Webhook-Delivery-ID')),
  notCovered: ['X-WC-Webhook-Delivery-ID and every other header'],
  replayedBy: 'body',
  handshake,
  successStatus: 200,
  timeLimitMs: minute,
  retryHorizonMs: 0,
  setup: ['WooCommerce → Settings → Advanced → Webhooks → Add webhook: the URL, a secret, status Active.'],
  cautions: [
    'WooCommerce never retries: an answer other than 2xx loses the event. Five failures in a row disable the webhook.',
    'Every send has an id of its own, so it only stops replays that keep it; the signature does not cover it. `replayGuard` stops the others; it is off because two topics may have one body.',
    'The signature’s algorithm can be changed by a filter; this preset is for the default, SHA-256.',
  ],
  unverified: ['That 301 and 302 count as success.'],
  sources: [
    'https://github.com/woocommerce/woocommerce (includes/class-wc-webhook.php)',
    'https://woocommerce.github.io/woocommerce-rest-api-docs/',
  ],
};
