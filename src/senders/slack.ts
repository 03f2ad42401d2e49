import { textSecret, type Sender } from '../core/sender.ts';

export const slack: Sender = {
  name: 'slack',
  title: 'Slack Events API',
  signature: {
    scheme: 'hmac-sha256',
    signature: { header: 'X-Slack-Signature', prefix: 'v0=', encoding: 'hex' },
    timestamp: { from: { header: 'X-Slack-Request-Timestamp' }, unit: 's', toleranceMs: 300_000 },
    signed: 'v0:{timestamp}:{body}',
  },
  decodeSecret: textSecret,
  identity: {
    parts: [
      { from: 'json', pointer: ['event_id'] },
      { from: 'json', pointer: ['api_app_id'], optional: true },
    ],
    bodyHash: false,
    missing: 'reject',
    scope: 'route',
  },
  successStatus: 200,
  timeLimitMs: 3_000,
  // With the option "Delayed Events" it retries hourly for 24 hours; by default at once, after 1 and after 5 minutes.
  retryHorizonMs: 24 * 3_600_000,
  lastRetryMs: 300_000,
  sources: [
    'https://docs.slack.dev/authentication/verifying-requests-from-slack',
    'https://docs.slack.dev/apis/events-api',
    'https://github.com/slackapi/bolt-js/blob/main/src/receivers/verify-request.ts',
  ],
  cautions: [
    'Slash commands and interactivity carry no event_id, and are not retried: give them a route of their own.',
    'X-Slack-Retry-Num decides nothing: the first attempt may have failed.',
    'More than 95 % failures within an hour switch an app off, unless it gets fewer than 1,000 events an hour.',
  ],
};
