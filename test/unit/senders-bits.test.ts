/** No single flipped bit of what a signature covers gets through, for every preset that has a signature. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { header } from '../../src/core/delivery.ts';
import { jsonLookup } from '../../src/core/json-value.ts';
import type { Sender } from '../../src/core/sender.ts';
import { appliesTo, type TemplateRule } from '../../src/core/signature-template.ts';
import { templatesOf } from '../../src/core/verify.ts';
import { senders } from '../../src/senders/index.ts';
import { pointer } from '../../src/senders/rules.ts';
import { bodyOf, deliveryOf, vectors, verified, type VerifyVector } from '../support/vectors.ts';

/** A covered part: where its bytes are, and the delivery with others in their place. */
interface Part {
  readonly name: string;
  readonly bytes: Buffer;
  /** Undefined: such bytes cannot stand there. */
  with(bytes: Buffer): VerifyVector | undefined;
}

const borrowed: Record<string, string> = { 'discord-events': 'discord', 'hubspot-v3': 'hubspot' };

const secret = 'a secret for tests';
const graphBody = JSON.stringify({ value: [{ clientState: secret, resource: 'r' }] });
/** Deliveries of senders without vectors. */
const made: Record<string, Pick<VerifyVector, 'headers' | 'body'>> = {
  klarna: signedHere('Klarna-Signature', '', 'hex'),
  'mailgun-optimize-alerts': signedHere('X-Sign', '', 'hex'),
  'microsoft-graph': { headers: {}, body: graphBody },
  'twitter-x': signedHere('X-Twitter-Webhooks-Signature', 'sha256=', 'base64'),
};

function signedHere(name: string, prefix: string, encoding: 'hex' | 'base64'): Pick<VerifyVector, 'headers' | 'body'> {
  const body = '{"id":"evt_1"}';
  return { headers: { [name]: prefix + createHmac('sha256', secret).update(body).digest(encoding) }, body };
}

for (const sender of senders.values()) {
  if (sender.signature.scheme === 'none') continue;
  test(`${sender.name}: no flipped bit verifies`, () => {
    const parts = new Map<string, Part[]>();
    for (const vector of smallest(sender)) parts.set(vector.id, partsOf(sender, vector));
    assert.ok(parts.size > 0);
    for (const part of [...parts.values()].flat()) {
      assert.ok(part.bytes.length > 0, part.name);
      assert.ok(verified(sender, part.with(part.bytes)!), `${part.name}: the delivery itself`);
      for (let bit = 0; bit < part.bytes.length * 8; bit += 1) {
        const flipped = Buffer.from(part.bytes);
        flipped[bit >> 3]! ^= 1 << (bit & 7);
        const changed = part.with(flipped);
        if (changed) assert.equal(verified(sender, changed) !== undefined, false, `${part.name}: bit ${bit}`);
      }
    }
  });
}

/** One accepted delivery for each of the headers and schemes that the preset knows. */
function smallest(sender: Sender): VerifyVector[] {
  const own = made[sender.name];
  if (own) {
    const common = {
      id: sender.name,
      provider: sender.name,
      why: '',
      kind: 'verify',
      valid: true,
      method: 'POST',
    } as const;
    return [{ ...common, secret, now: null, ...own }];
  }
  const accepted = vectors.filter(
    (vector): vector is VerifyVector =>
      vector.kind === 'verify' &&
      vector.provider === (borrowed[sender.name] ?? sender.name) &&
      vector.body_recipe === undefined &&
      bodyOf(vector).length > 1 &&
      (vector.gateway_should_accept ?? vector.valid) &&
      vector.either_verdict_is_safe !== true &&
      // Escapes and ports can be written in several ways.
      !/%|:[0-9]/.test(vector.url ?? '') &&
      verified(sender, vector) !== undefined,
  );
  const byHeaders = Map.groupBy(
    accepted,
    ({ headers, url, public_key }) => `${Object.keys(headers).sort().join()} ${url?.length} ${public_key}`,
  );
  return [...byHeaders.values()].map((group) => group.toSorted((a, b) => bodyOf(a).length - bodyOf(b).length)[0]!);
}

function partsOf(sender: Sender, vector: VerifyVector): Part[] {
  const rule = sender.signature;
  if (rule.scheme === 'own') return ownParts(sender.name, vector);
  if (rule.scheme === 'token')
    return 'header' in rule.from ? [inHeader(vector, rule.from.header)] : [inJson(vector, '/value/0/clientState')];
  return templateParts(
    templatesOf(rule).find((one) => appliesTo(one, deliveryOf(vector).headers))!,
    vector,
  );
}

function templateParts(rule: TemplateRule, vector: VerifyVector): Part[] {
  const { timestamp, idHeader, signed } = rule;
  const parts = [whole(vector)];
  if (timestamp && 'header' in timestamp.from) parts.push(inHeader(vector, timestamp.from.header));
  if (timestamp && 'prefix' in timestamp.from) {
    const { prefix } = timestamp.from;
    parts.push(inHeader(vector, rule.signature.header, new RegExp(`(?<=${prefix})[0-9]+`)));
  }
  if (idHeader !== undefined) parts.push(inHeader(vector, idHeader));
  if (signed.includes('{url}')) parts.push(inUrl(vector));
  return parts;
}

function ownParts(name: string, vector: VerifyVector): Part[] {
  switch (name) {
    case 'adyen': {
      const item = '/notificationItems/0/NotificationRequestItem';
      const fields = [
        'pspReference',
        'merchantAccountCode',
        'merchantReference',
        'amount/value',
        'amount/currency',
        'eventCode',
        'success',
      ];
      return fields.map((field) => inJson(vector, `${item}/${field}`));
    }
    case 'mailgun':
      return ['/signature/timestamp', '/signature/token'].map((at) => inJson(vector, at));
    case 'aws-sns': {
      const control = ['/Token', '/SubscribeURL'].filter((at) => jsonLookup(bodyOf(vector)).value(pointer(at)));
      return ['/Message', '/MessageId', '/Timestamp', '/TopicArn', '/Type', ...control].map((at) => inJson(vector, at));
    }
    case 'braintree':
      return [inForm(vector, 'bt_payload')];
    case 'paypal':
      return [whole(vector), inHeader(vector, 'PAYPAL-TRANSMISSION-ID'), inHeader(vector, 'PAYPAL-TRANSMISSION-TIME')];
    case 'plaid':
      return [whole(vector), inHeader(vector, 'Plaid-Verification')];
    case 'twilio': {
      if (vector.url!.includes('bodySHA256')) return [whole(vector), inUrl(vector)];
      const fields = [...new URLSearchParams(vector.body!)].filter(([, value]) => value !== '').map(([field]) => field);
      return [...new Set(fields)].map((field) => inForm(vector, field)).concat(inUrl(vector));
    }
    default:
      return assert.fail(`what the signature of ${name} covers`);
  }
}

const lower = ({ headers }: VerifyVector) =>
  Object.fromEntries(Object.keys(headers).map((name) => [name.toLowerCase(), name]));

function whole(vector: VerifyVector): Part {
  return {
    name: `${vector.id} body`,
    bytes: bodyOf(vector),
    with: (bytes) => ({ ...vector, body: null, body_base64: bytes.toString('base64') }),
  };
}

/** The header, or what the pattern finds in it. White space at the ends is never part of a header's value. */
function inHeader(vector: VerifyVector, name: string, pattern = /^.*$/s): Part {
  const own = lower(vector)[name.toLowerCase()]!;
  const text = header(deliveryOf(vector).headers, own)!;
  const found = pattern.exec(text)![0];
  return {
    name: `${vector.id} ${name}`,
    bytes: Buffer.from(found, 'latin1'),
    with(bytes) {
      const value = text.replace(pattern, () => bytes.toString('latin1'));
      return { ...vector, headers: { ...vector.headers, [own]: value } };
    },
  };
}

function inUrl(vector: VerifyVector): Part {
  return {
    name: `${vector.id} URL`,
    bytes: Buffer.from(vector.url!),
    with(bytes) {
      const url = bytes.toString('latin1');
      return /^https?:\/\/[^\s#]+$/.test(url) && URL.canParse(url) ? { ...vector, url } : undefined;
    },
  };
}

/** The text of a JSON value, as the body has it. */
function inJson(vector: VerifyVector, at: string): Part {
  const body = bodyOf(vector);
  const text = jsonLookup(body).value(pointer(at))!.text;
  const name = at.split('/').at(-1)!;
  const found = new RegExp(`"${name}":"?`).exec(body.toString('latin1'))!;
  const start = body.indexOf(text, found.index + found[0].length);
  const size = Buffer.byteLength(text);
  return {
    name: `${vector.id} ${at}`,
    bytes: body.subarray(start, start + size),
    with(bytes) {
      const changed = Buffer.concat([body.subarray(0, start), bytes, body.subarray(start + size)]);
      return { ...vector, body: null, body_base64: changed.toString('base64') };
    },
  };
}

/** The decoded value of a form field: its escapes can be written in several ways. */
function inForm(vector: VerifyVector, field: string): Part {
  const pairs = vector.body!.split('&');
  const index = pairs.findIndex((pair) => pair.startsWith(`${field}=`));
  const value = decodeURIComponent(pairs[index]!.slice(field.length + 1).replaceAll('+', ' '));
  return {
    name: `${vector.id} ${field}`,
    bytes: Buffer.from(value),
    with(bytes) {
      const escaped = [...bytes].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('');
      return { ...vector, body: pairs.with(index, `${field}=${escaped}`).join('&') };
    },
  };
}
