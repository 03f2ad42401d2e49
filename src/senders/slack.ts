import { plain, type Handshake } from '../core/handshake.ts';
import { jsonLookup } from '../core/json-value.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { day, inJson, maybeInJson, minute, namedBy, second } from './rules.ts';

/** https://docs.slack.dev/reference/events/url_verification */
const handshake: Handshake = {
  when: 'signed',
  methods: [],
  title: 'the signed `url_verification` request; its challenge is echoed',
  answer({ body }) {
    const json = jsonLookup(body);
    const challenge = json.value(['challenge']);
    if (json.value(['type'])?.text !== 'url_verification' || challenge?.kind !== 'string') return undefined;
    return plain(challenge.text);
  },
};

export const slack: Sender = {
  name: 'slack',
  title: 'Slack Events API',
  signature: {
    scheme: 'hmac-sha256',
    signature: { header: 'X-Slack-Signature', prefix: 'v0=', encoding: 'hex' },
    timestamp: { from: { header: 'X-Slack-Request-Timestamp' }, unit: 's', toleranceMs: 5 * minute },
    signed: 'v0:{timestamp}:{body}',
  },
  secret: "the app's signing secret",
  decodeSecret: textSecret,
  identity: namedBy(inJson('/event_id'), maybeInJson('/api_app_id')),
  handshake,
  successStatus: 200,
  timeLimitMs: 3 * second,
  // With the option "Delayed Events" it retries hourly for 24 hours; by default at once, after 1 and after 5 minutes.
  retryHorizonMs: day,
  lastRetryMs: 5 * minute,
  setup: [
    'Basic Information → App Credentials: copy the signing secret.',
    'Event Subscriptions → Request URL: the URL; the gateway answers the challenge as soon as the route is configured.',
  ],
  cautions: [
    'Slash commands and interactivity carry no event_id, and are not retried: give them a route of their own.',
    'X-Slack-Retry-Num decides nothing: the first attempt may have failed.',
    'More than 95 % failures within an hour switch an app off, unless it gets fewer than 1,000 events an hour.',
  ],
  unverified: ['That event_id is unique for ever.'],
  sources: [
    'https://docs.slack.dev/authentication/verifying-requests-from-slack',
    'https://docs.slack.dev/apis/events-api',
    'https://github.com/slackapi/bolt-js/blob/main/src/receivers/verify-request.ts',
  ],
};
