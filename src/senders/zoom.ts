import { createHmac } from 'node:crypto';
import { json, type Handshake } from '../core/handshake.ts';
import { jsonLookup } from '../core/json-value.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { sharedSecrets } from '../core/signature-items.ts';
import { inJson, minute, namedBy, pointer, second } from './rules.ts';

/** https://developers.zoom.us/docs/api/webhooks/#validate-your-webhook-endpoint */
const handshake: Handshake = {
  when: 'signed',
  methods: [],
  title: 'the signed event `endpoint.url_validation`, on saving and every 72 hours; its plainToken is hashed',
  answer({ body }, { secrets }) {
    const look = jsonLookup(body);
    const plainToken = look.value(pointer('/payload/plainToken'));
    const [secret] = sharedSecrets(secrets);
    if (look.value(['event'])?.text !== 'endpoint.url_validation' || plainToken?.kind !== 'string' || !secret)
      return undefined;
    const encryptedToken = createHmac('sha256', secret).update(plainToken.text).digest('hex');
    return json({ plainToken: plainToken.text, encryptedToken });
  },
};

export const zoom: Sender = {
  name: 'zoom',
  title: 'Zoom',
  signature: {
    scheme: 'hmac-sha256',
    signature: { header: 'x-zm-signature', prefix: 'v0=', encoding: 'hex' },
    timestamp: { from: { header: 'x-zm-request-timestamp' }, unit: 's', toleranceMs: 5 * minute },
    signed: 'v0:{timestamp}:{body}',
  },
  secret: "the app's secret token",
  decodeSecret: textSecret,
  identity: namedBy(inJson('/event'), inJson('/event_ts'), {
    from: 'first-of',
    ways: [[inJson('/payload/object/uuid')], [inJson('/payload/object/id')], [{ from: 'body' }]],
  }),
  handshake,
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: 3 * second,
  // 5 minutes, then 20 and 60 more.
  retryHorizonMs: 85 * minute,
  lastRetryMs: 85 * minute,
  setup: [
    'App Marketplace → the app → Features → Access: copy the secret token, and configure the route with it.',
    'Event Subscriptions → Event notification endpoint URL: the URL, then Validate.',
  ],
  cautions: [
    'There is no event id: a delivery is named by event, event_ts and the uuid or id of its object, or else its body.',
    'Zoom publishes no window for the timestamp; five minutes is this preset’s choice.',
  ],
  unverified: ['That a retry keeps its event_ts.'],
  sources: [
    'https://developers.zoom.us/docs/api/webhooks/',
    'https://devsupport.zoom.us/hc/en-us/articles/360059893812-Webhook-delays',
    'https://github.com/zoom/webhook-sample',
  ],
};
