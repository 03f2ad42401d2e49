import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import type { TemplateRule } from '../core/signature-template.ts';
import { day, inEach, minute, namedBy, second } from './rules.ts';

/** HubSpot signs the URL with these escapes resolved; it is compared as it came, too. */
const resolved = /%(3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/gi;
const urlForms = (url: string): string[] => [
  url,
  url.replace(resolved, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
];

const v3: TemplateRule = {
  scheme: 'hmac-sha256',
  signature: { header: 'X-HubSpot-Signature-v3', prefix: '', encoding: 'base64' },
  timestamp: { from: { header: 'X-HubSpot-Request-Timestamp' }, unit: 'ms', toleranceMs: 5 * minute },
  signed: '{method}{url}{body}{timestamp}',
  urlForms,
};
const v1: TemplateRule = {
  scheme: 'sha256',
  signature: { header: 'X-HubSpot-Signature', prefix: '', encoding: 'hex' },
  signed: '{secret}{body}',
};
const v2: TemplateRule = {
  ...v1,
  signed: '{secret}{method}{url}{body}',
  urlForms,
  version: { header: 'X-HubSpot-Signature-Version', value: 'v2' },
};

/** attemptNumber, which is in the body too, rises with each retry. */
const events = inEach('', '/portalId?', '/subscriptionId?', '/eventId', '/objectId?', '/occurredAt?');

export const hubspot: Sender = {
  name: 'hubspot',
  title: 'HubSpot',
  signature: { scheme: 'first-of', rules: [v3, v2, v1] },
  secret: "the app's client secret",
  decodeSecret: textSecret,
  identity: namedBy(events),
  elements: events,
  successStatus: 200,
  timeLimitMs: 5 * second,
  retryHorizonMs: day,
  lastRetryMs: day,
  setup: [
    'The app → Auth: copy the client secret. The app → Webhooks: the target URL and the subscriptions.',
    'Configure exactly this URL as `publicUrl`.',
  ],
  cautions: [
    'Signatures of version 3 are preferred; without one, those of version 2 and 1 are taken, which are plain hashes without a timestamp and can be replayed for ever. `sender: hubspot-v3` takes nothing else.',
    'One delivery carries up to a hundred events; it is named by all of them, in their order, unless the route says elements: each.',
    'Workflow webhooks and CRM cards have other bodies: say in `identity` what names them.',
  ],
  unverified: [
    'Which escapes of the URL HubSpot resolves before it signs (version 2 and 3).',
    'That eventId alone is not unique; up to 100 events in a delivery.',
  ],
  sources: [
    'https://developers.hubspot.com/docs/guides/apps/authentication/validating-requests',
    'https://github.com/HubSpot/hubspot-api-nodejs (src/utils/signature.ts)',
  ],
};

export const hubspotV3: Sender = {
  ...hubspot,
  name: 'hubspot-v3',
  title: 'HubSpot, signatures of version 3 only',
  signature: v3,
  cautions: hubspot.cautions.slice(1),
};
