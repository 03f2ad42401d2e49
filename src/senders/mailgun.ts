import { createHmac } from 'node:crypto';
import { sameBytes } from '../core/bytes.ts';
import type { Received } from '../core/delivery.ts';
import { jsonLookup } from '../core/json-value.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { rejected, sharedSecrets, type Checked, type Circumstances } from '../core/signature-items.ts';
import { staleness, timestampText, type TimestampRule } from '../core/signature-timestamp.ts';
import { empty, type Handshake } from '../core/handshake.ts';
import { hour, inJson, maybeInJson, minute, namedBy, pointer, signedBody } from './rules.ts';

/** Retries run for 8 hours and may carry the first delivery's timestamp; ahead there can only be clocks. */
const timestamp: TimestampRule = {
  from: { json: pointer('/signature/timestamp') },
  unit: 's',
  toleranceMs: 9 * hour,
  aheadMs: 5 * minute,
};

/** HMAC over timestamp and token, all three in the JSON body. Nothing parts the two: digits must not move between them. */
function check(received: Received, { secrets, wallMs }: Circumstances): Checked {
  const json = jsonLookup(received.body);
  const token = json.value(pointer('/signature/token'));
  const signature = json.value(pointer('/signature/signature'));
  if (token?.kind !== 'string' || signature?.kind !== 'string')
    return rejected('missing_signature', 'the body has no signature with its token');
  const time = timestampText(timestamp, [], received);
  if (typeof time !== 'string') return time;
  if (time.length !== 10) return rejected('bad_signature', 'the timestamp does not have the digits of our times');
  const key = sharedSecrets(secrets).find((secret) => {
    const right = createHmac('sha256', secret).update(time).update(token.text).digest('hex');
    return sameBytes(Buffer.from(signature.text.toLowerCase()), Buffer.from(right));
  });
  if (key === undefined) return rejected('bad_signature', 'the signature in the body does not match');
  return staleness(timestamp, time, wallMs) ?? { kind: 'matched', key, signedId: token.text };
}

export const mailgun: Sender = {
  name: 'mailgun',
  title: 'Mailgun',
  signature: {
    scheme: 'own',
    title: 'HMAC-SHA256, in the body, over timestamp and token',
    usesUrl: false,
    timestamp,
    check,
  },
  secret: 'the HTTP webhook signing key',
  decodeSecret: textSecret,
  // The id is unique within a day; the timestamp is the event's own.
  identity: namedBy(inJson('/event-data/id'), maybeInJson('/event-data/timestamp')),
  notCovered: ['`event-data`: everything that the event says'],
  replayedBy: 'signed-id',
  guarded: true,
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: undefined,
  // 10, 10, 15 and 30 minutes, then 1, 2 and 4 hours.
  retryHorizonMs: 8 * hour + 5 * minute,
  lastRetryMs: 8 * hour + 5 * minute,
  setup: ['Sending → Webhooks: the URL for each kind of event; the signing key is under API Security.'],
  cautions: [
    'The signature covers a timestamp and a token only: who has seen one delivery can put any event under it for nine hours. `replayGuard`, which is on, lets each token through once.',
    'Only 200 is success; 406 stops retries, and the application may answer it (`completeOn: [406]`).',
    'For webhooks in JSON; inbound routes post forms and are signed in form fields, which this preset does not read.',
  ],
  unverified: ['Whether a retry keeps its token.', 'That an id is unique within a day only.'],
  sources: [
    'https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks',
    'https://github.com/mailgun/documentation (user_manual.rst)',
  ],
};

/** The URL is probed when it is saved. */
const probe: Handshake = {
  when: 'open',
  methods: ['GET'],
  title: 'a `GET` when the URL is saved; answered 200',
  answer: ({ method }) => (method === 'GET' ? empty(200) : undefined),
};

export const mailgunOptimizeAlerts: Sender = {
  name: 'mailgun-optimize-alerts',
  title: 'Mailgun Optimize alerts',
  signature: signedBody('X-Sign', 'hex'),
  secret: 'the alerts’ own signing key, which the API shows and resets',
  decodeSecret: textSecret,
  identity: { ...namedBy(), bodyHash: true },
  handshake: probe,
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: undefined,
  retryHorizonMs: 8 * hour,
  lastRetryMs: 8 * hour,
  setup: ['Create an alert with the URL by the API, and ask it for the signing key.'],
  cautions: [
    'There is no id: a delivery is named by its body, and an alert that says the same twice within the retention is one event.',
    'When all retries have failed the alert is disabled.',
  ],
  unverified: ['That a retry has the same bytes.'],
  sources: ['https://github.com/mailgun/documentation (api-deliverability-alerts.rst)'],
};
