import { p256Secret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, inEach, namedBy } from './rules.ts';

const events = inEach('', '/sg_event_id');

export const sendgrid: Sender = {
  name: 'sendgrid',
  title: 'Twilio SendGrid Event Webhook',
  signature: {
    scheme: 'ecdsa-p256',
    signature: { header: 'X-Twilio-Email-Event-Webhook-Signature', prefix: '', encoding: 'base64' },
    // Retries run for a day, and neither page nor library has a window.
    timestamp: { from: { header: 'X-Twilio-Email-Event-Webhook-Timestamp' }, unit: 's', toleranceMs: undefined },
    signed: '{timestamp}{body}',
  },
  secret: 'the verification key: the public key in base64, as SendGrid shows it',
  decodeSecret: p256Secret,
  identity: namedBy(events),
  elements: events,
  successStatus: 200,
  timeLimitMs: undefined,
  retryHorizonMs: day,
  lastRetryMs: day,
  setup: [
    'Settings → Mail Settings → Event Webhooks: the URL, and Signed Event Webhook on; then copy the verification key.',
  ],
  cautions: [
    'One delivery carries many events. It is named by the sg_event_id of all of them, in their order: the same events cut into other batches are new deliveries, and the application must know its events by sg_event_id, or the route say elements: each.',
    'Switching the signature off and on again makes a new key.',
    'Bodies end with CRLF, which is signed.',
  ],
  unverified: [
    'Whether batches are cut differently when they are sent again.',
    'The retry time is from a page of 2021.',
  ],
  sources: [
    'https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features',
    'https://github.com/sendgrid/sendgrid-nodejs/tree/main/packages/eventwebhook',
  ],
};
