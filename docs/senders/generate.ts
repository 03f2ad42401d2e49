/** One page for each sender, from its preset: `node docs/senders/generate.ts` writes them; a test compares. */
import { writeFileSync } from 'node:fs';
import type { IdentityPart } from '../../src/core/identify.ts';
import { formatPointer } from '../../src/core/json-pointer.ts';
import type { Sender } from '../../src/core/sender.ts';
import type { TemplateRule } from '../../src/core/signature-template.ts';
import type { TimestampRule } from '../../src/core/signature-timestamp.ts';
import { templatesOf, usesUrl, type SignatureRule } from '../../src/core/verify.ts';
import { senders } from '../../src/senders/index.ts';

/** File names in this folder, and what they hold. */
export function pages(): Map<string, string> {
  const all = [...senders.values()].toSorted((a, b) => a.title.localeCompare(b.title, 'en'));
  return new Map([['README.md', overview(all)], ...all.map((sender) => [`${sender.name}.md`, page(sender)] as const)]);
}

const generated = '<!-- Made from src/senders by docs/senders/generate.ts: change it there. -->';

function overview(all: readonly Sender[]): string {
  const rows = all.map((sender) => {
    const unsure = sender.unverified === undefined ? '' : ' ¹';
    return `| [${sender.title}](${sender.name}.md) | \`${sender.name}\` | ${shortRule(sender.signature)} | ${shortIdentity(sender)} | ${time(sender.timeLimitMs) ?? '–'} | ${retries(sender)}${unsure} | ${sender.handshake ? 'answered' : '–'} |`;
  });
  return `${[
    generated,
    '# Senders',
    'A route names its sender, and the gateway knows the rest: how deliveries are signed, what names an event, how long the sender waits and for how long it tries again, and how it makes sure of an endpoint. Each page says what to do at the sender, the configuration to paste, and what to know before relying on it.',
    'For a sender that is not here: [your own sender](your-own.md).',
    [
      '| sender | `sender:` | signature | an event is named by | time limit | retries for | handshake |',
      '| --- | --- | --- | --- | --- | --- | --- |',
      ...rows,
    ].join('\n'),
    '¹ Some facts on its page were not found in the sender’s own documentation or code; they are listed there.',
    notes,
  ].join('\n\n')}\n`;
}

const notes = `## For all of them

- **Bytes, never text.** Signatures are checked over the body as it came, before anything is parsed. Several secrets may be configured at once, for rotation; several signatures in one delivery are all looked at.
- **Timestamps** are checked on both sides of now. \`tolerance\` of the route sets another window where the sender has one.
- **Batches.** A delivery with several events is one event for the gateway, named by all of them in their order. The same events cut into other deliveries are new: the application must know them by their own ids. Where the page says so, \`elements: each\` makes each of them an event of its own: [deliveries with several events](../batches.md).
- **What is not signed can be changed** by whoever has seen a delivery. Where the signature does not cover the id, a captured delivery can come again under a fresh one; \`replayGuard: 7d\` remembers what was handled by its content, and answers such a copy like a duplicate, with \`Hookonce-Replay: true\`. It is on where never two events of a sender have one content (Linear, Mailgun, PayPal, Razorpay), and off where the sender may mean two events by two equal bodies: of those the second would be lost.
- **The same id with another body** is a duplicate all the same. \`fingerprint: refuse\` answers it 422, \`fingerprint: forward\` takes it for an event of its own; \`hookonce_other_bodies_total\` counts. Not for senders that count their attempts or renew a time in the body: HubSpot, LINE, Coinbase Commerce, Intercom, Linear, Notion.
- **Without an identity** a delivery is refused, or what the page says. \`identity: {missing: reject | forward | bodyHash}\` decides otherwise; \`hookonce_identity_missing_total\` counts.`;

function page(sender: Sender): string {
  const { title, name, setup, cautions, unverified, sources } = sender;
  const facts = factsOf(sender).map(([what, value]) => `| ${what} | ${value} |`);
  return `${[
    generated,
    `# ${title}`,
    `\`sender: ${name}\``,
    '## At the sender',
    setup.map((step, i) => `${i + 1}. ${step}`).join('\n'),
    '## Configuration',
    `\`\`\`yaml\n${configuration(sender)}\n\`\`\``,
    `The secret is ${sender.secret}.`,
    '## What is known',
    ['| | |', '| --- | --- |', ...facts].join('\n'),
    '## Cautions',
    list(cautions),
    ...(unverified === undefined
      ? []
      : ['## Not verified', `No page or code of the sender was found for:\n\n${list(unverified)}`]),
    '## Sources',
    list(sources),
  ].join('\n\n')}\n`;
}

/** A route to paste; the test loads it. */
export function configuration(sender: Sender): string {
  const { name, signature, handshake } = sender;
  return [
    'routes:',
    `  - name: ${name}`,
    `    path: /webhooks/${name}`,
    `    sender: ${name}`,
    ...(signature.scheme === 'none' ? [] : [`    secrets: [{file: /etc/hookonce/secrets/${name}}]`]),
    ...(usesUrl(signature) ? [`    publicUrl: https://hooks.example.com/webhooks/${name}`] : []),
    ...(handshake?.token ? [`    handshake: {token: {file: /etc/hookonce/secrets/${name}-verify-token}}`] : []),
    ...(sender.replayedBy === undefined || sender.guarded ? [] : ['    # replayGuard: 7d']),
    ...(sender.elements === undefined ? [] : ['    # elements: each']),
    ...(sender.ordering === undefined ? [] : ['    # ordering: {}']),
  ].join('\n');
}

function factsOf(sender: Sender): [string, string][] {
  const { signature, identity, notCovered, handshake, successStatus, timeLimitMs, replayedBy, guarded } = sender;
  const missing = { reject: 'refused with 400', forward: 'forwarded without a claim', bodyHash: 'named by its body' };
  return [
    ['signature', ruleInWords(signature)],
    ['not covered by it', notCovered?.join('; ') ?? 'headers that are not named above'],
    ['timestamp', windows(signature)],
    ['an event is named by', identityInWords(sender)],
    ['a delivery without that', missing[identity.missing]],
    ...elementsInWords(sender),
    ...orderInWords(sender),
    [
      '`replayGuard`',
      `${replays[replayedBy ?? 'none']}${replayedBy ? `; ${guarded ? 'on' : 'off'} unless said otherwise` : ''}`,
    ],
    ['a duplicate is answered', String(successStatus)],
    ['the sender waits', time(timeLimitMs) ?? 'not published'],
    ['it tries again', retries(sender) === 'never' ? 'never' : `for ${retries(sender)}`],
    ['handshake', handshake?.title ?? 'none'],
  ];
}

function elementsInWords({ elements }: Sender): [string, string][] {
  return elements === undefined ? [] : [['`elements: each`', 'takes deliveries apart: [how](../batches.md)']];
}

function orderInWords({ ordering }: Sender): [string, string][] {
  if (ordering === undefined) return [];
  const resource = ordering.resource.map(partInWords).join(' and ');
  return [['`ordering: {}`', `[in order](../ordering.md): of ${resource}, by ${partInWords(ordering.version)}`]];
}

const replays = {
  body: 'goes by the body',
  'signed-id': 'goes by the signed id',
  none: 'not needed: what names an event is signed',
};

const hashes: Record<TemplateRule['scheme'], string> = {
  'hmac-sha1': 'HMAC-SHA1',
  'hmac-sha256': 'HMAC-SHA256',
  'hmac-sha512': 'HMAC-SHA512',
  sha256: 'SHA-256',
  ed25519: 'Ed25519',
  'ecdsa-p256': 'ECDSA P-256 with SHA-256',
};

function ruleInWords(rule: SignatureRule): string {
  switch (rule.scheme) {
    case 'none':
      return 'none';
    case 'token':
      return 'header' in rule.from
        ? `none; \`${rule.from.header}\` must be the secret`
        : `none; \`${formatPointer(rule.from.each)}\` of every element of \`${formatPointer(rule.from.list)}\` must be the secret`;
    case 'own':
      return rule.title;
    case 'first-of':
      return `the first of these whose headers are there: ${rule.rules.map(templateInWords).join('; or ')}`;
    case 'any-of':
      return `any of: ${rule.rules.map(templateInWords).join('; or ')}`;
    case 'hmac-sha1':
    case 'hmac-sha256':
    case 'hmac-sha512':
    case 'sha256':
    case 'ed25519':
    case 'ecdsa-p256':
      return templateInWords(rule);
  }
}

function templateInWords({ scheme, signature, signed, version }: TemplateRule): string {
  const { header, prefix, encoding, several } = signature;
  const where =
    several === 'numbered'
      ? `\`${header}-1\`, \`-2\`, …`
      : `\`${header}\`${several === 'lines' ? ', in several lines' : ''}`;
  const when = version === undefined ? '' : ` when \`${version.header}\` is \`${version.value}\``;
  return `${where}${when}${prefix === '' ? '' : `, after \`${prefix}\``}: ${hashes[scheme]} of \`${signed}\` in ${encoding}`;
}

function shortRule(rule: SignatureRule): string {
  if (rule.scheme === 'none') return 'none';
  if (rule.scheme === 'token') return 'a token';
  if (rule.scheme === 'own') return rule.title.split(/[,(]| over/)[0]!.trim();
  return [...new Set(templatesOf(rule).map(({ scheme }) => hashes[scheme]))].join(', ');
}

function windows(rule: SignatureRule): string {
  const rules = rule.scheme === 'own' ? [rule] : templatesOf(rule);
  const timed = rules.flatMap(({ timestamp }) => (timestamp === undefined ? [] : [timestampInWords(timestamp)]));
  return [...new Set(timed)].join('; ') || 'none';
}

function timestampInWords({ from, unit, toleranceMs, aheadMs }: TimestampRule): string {
  const where =
    'header' in from
      ? `\`${from.header}\``
      : 'prefix' in from
        ? `\`${from.prefix}\``
        : `\`${formatPointer(from.json)}\` of the body`;
  return `${where} in ${unit}, ${toleranceMs === undefined ? 'of any age' : aheadMs === undefined ? `within ${time(toleranceMs)} of now` : `at most ${time(toleranceMs)} old and ${time(aheadMs)} ahead`}`;
}

function identityInWords({ identity }: Sender): string {
  const parts = identity.bodyHash ? [...identity.parts, { from: 'body' } as const] : identity.parts;
  return parts.length === 0 ? 'nothing' : parts.map(partInWords).join(' and ');
}

function partInWords(part: IdentityPart): string {
  switch (part.from) {
    case 'header':
      return part.names.map((name) => `\`${name}\``).join(' or ');
    case 'json':
      return `\`${formatPointer(part.pointer)}\`${part.optional ? ' where there is one' : ''}`;
    case 'json-list': {
      const each = part.each.map(({ pointer, optional }) => `\`${formatPointer(pointer)}\`${optional ? '?' : ''}`);
      const list = part.list.length === 0 ? 'the list in the body' : `\`${formatPointer(part.list)}\``;
      return `${each.join(', ')} of every element of ${list}`;
    }
    case 'form':
      return `the form field \`${part.field}\`${part.optional ? ' where there is one' : ''}`;
    case 'signed-id':
      return 'the signed id';
    case 'body':
      return 'the hash of the body';
    case 'first-of':
      return `the first of these that is there: ${part.ways.map((way) => way.map(partInWords).join(' and ')).join('; or ')}`;
  }
}

function shortIdentity(sender: Sender): string {
  const words = identityInWords(sender).replaceAll(' where there is one', '?');
  return words.length > 80 ? `${words.slice(0, words.slice(0, 80).lastIndexOf(' ')).replace(/[,;:]$/, '')} …` : words;
}

function retries({ retryHorizonMs }: Sender): string {
  return retryHorizonMs === 0 ? 'never' : time(retryHorizonMs)!;
}

/** As a person says it: 27 h 35 min. */
function time(ms: number | undefined): string | undefined {
  if (ms === undefined) return undefined;
  const seconds = Math.round(ms / 1000);
  const [days, hours, minutes, rest] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ];
  const parts = [days && `${days} d`, hours && `${hours} h`, minutes && `${minutes} min`, rest && `${rest} s`].filter(
    Boolean,
  );
  return parts.slice(0, 2).join(' ');
}

const list = (items: readonly string[]): string => items.map((item) => `- ${item}`).join('\n');

if (import.meta.main) for (const [name, text] of pages()) writeFileSync(new URL(name, import.meta.url), text);
