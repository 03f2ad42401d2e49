import { empty, json, type Handshake } from '../core/handshake.ts';
import { jsonLookup } from '../core/json-value.ts';
import { ed25519Secret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { body, inJson, minute, namedBy, second } from './rules.ts';

/** Type 1 is the PING of interactions, type 0 that of events. */
const handshake: Handshake = {
  when: 'signed',
  methods: [],
  title: 'the signed PING; answered `{"type":1}` for interactions and 204 for events',
  answer({ body }) {
    const look = jsonLookup(body);
    const type = look.value(['type'])?.text;
    if (type === '0') return empty(204);
    // A webhook event has type 1 as well, and brings its event along.
    return type === '1' && look.value(['event', 'type']) === undefined ? json({ type: 1 }) : undefined;
  },
};

export const discord: Sender = {
  name: 'discord',
  title: 'Discord interactions',
  signature: {
    scheme: 'ed25519',
    signature: { header: 'X-Signature-Ed25519', prefix: '', encoding: 'hex' },
    // No window is published, and none is in Discord's own library.
    timestamp: { from: { header: 'X-Signature-Timestamp' }, unit: 's', toleranceMs: undefined },
    signed: '{timestamp}{body}',
  },
  secret: "the application's public key, 64 hexadecimal digits",
  decodeSecret: ed25519Secret,
  identity: namedBy(inJson('/id')),
  handshake,
  successStatus: 200,
  onlyStatus: true,
  timeLimitMs: 3 * second,
  retryHorizonMs: 0,
  setup: [
    'Developer Portal → the application → General Information: copy the public key and configure the route with it.',
    'Interactions Endpoint URL: the URL. Discord sends a PING, and a wrong signature that must be refused.',
  ],
  cautions: [
    'Discord sends wrong signatures on purpose, also later, and removes the endpoint when they are not answered 401.',
    'The answer to an interaction is what the user sees, within 3 seconds: use sync mode, and no queue.',
  ],
  unverified: ['That interactions are never retried.'],
  sources: [
    'https://docs.discord.com/developers/interactions/overview',
    'https://github.com/discord/discord-interactions-js',
  ],
};

export const discordEvents: Sender = {
  ...discord,
  name: 'discord-events',
  title: 'Discord webhook events',
  identity: namedBy(body),
  successStatus: 204,
  onlyStatus: true,
  retryHorizonMs: 10 * minute,
  lastRetryMs: 10 * minute,
  setup: [discord.setup[0]!, 'Webhooks → Endpoint: the URL, and the events.'],
  cautions: [
    discord.cautions[0]!,
    'There is no event id: a delivery is named by its body, which holds the time of the event.',
    'Success is 204.',
  ],
  unverified: ['That a retry has the same bytes.'],
  sources: ['https://docs.discord.com/developers/events/webhook-events', ...discord.sources],
};
