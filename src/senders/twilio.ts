import { createHash, createHmac } from 'node:crypto';
import { parse, stringify } from 'node:querystring';
import { sameBytes } from '../core/bytes.ts';
import type { Received } from '../core/delivery.ts';
import { allHeaders } from '../core/delivery.ts';
import { queryValue } from '../core/handshake.ts';
import type { IdentityPart } from '../core/identify.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import {
  notAtPublicUrl,
  onlyLine,
  rejected,
  sharedSecrets,
  type Checked,
  type Circumstances,
} from '../core/signature-items.ts';
import { inForm, inHeader, namedIfPossible, second } from './rules.ts';

/**
 * HMAC over the URL and every form parameter, sorted; or over the URL alone, when it says what hash the body
 * must have. https://www.twilio.com/docs/usage/security#validating-requests
 */
function check({ headers, body }: Received, { secrets, url }: Circumstances): Checked {
  const offered = onlyLine(headers, 'X-Twilio-Signature');
  if (typeof offered !== 'string') return offered;
  if (url === undefined) return rejected('bad_signature', notAtPublicUrl);
  const algorithm = algorithmOf(allHeaders(headers, 'X-Twilio-Webhooks-Signature-Settings'));
  if (algorithm === undefined) return rejected('bad_signature', 'the signature is of an algorithm that is not known');

  const bodyHash = queryValue(url, 'bodySHA256');
  if (bodyHash !== undefined && !hashes(bodyHash, body))
    return rejected('bad_signature', 'the body does not have the hash that the URL names');
  const parameters = bodyHash === undefined ? parametersText(body) : '';
  const key = sharedSecrets(secrets).find((secret) => {
    const right = urlForms(url).map((form) =>
      createHmac(algorithm, secret)
        .update(form + parameters, 'latin1')
        .digest('base64'),
    );
    const same = right.map((text) => sameBytes(Buffer.from(text), Buffer.from(offered)));
    return same.includes(true);
  });
  return key
    ? { kind: 'matched', key }
    : rejected('bad_signature', 'the signature in header X-Twilio-Signature does not match');
}

const hashes = (hex: string, body: Buffer): boolean =>
  sameBytes(Buffer.from(hex), Buffer.from(createHash('sha256').update(body).digest('hex')));

/** Webhooks of a shared key name the algorithm; those of the auth token have no such header. */
function algorithmOf(settings: readonly string[]): 'sha1' | 'sha256' | undefined {
  const named = settings
    .join()
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item.startsWith('algorithm='));
  if (named.length === 0) return 'sha1';
  return named.length === 1 && named[0] === 'algorithm=HMAC_SHA256'
    ? 'sha256'
    : named[0] === 'algorithm=HMAC_SHA1' && named.length === 1
      ? 'sha1'
      : undefined;
}

/** Names and values as bytes (latin1), sorted by name; of a name with several values each once, sorted. */
function parametersText(body: Buffer): string {
  const values = new Map<string, Set<string>>();
  for (const pair of body.toString('latin1').split('&')) {
    if (pair === '') continue;
    const mark = pair.indexOf('=');
    const [name, value] = mark === -1 ? [pair, ''] : [pair.slice(0, mark), pair.slice(mark + 1)];
    const known = values.get(unescaped(name)) ?? new Set();
    values.set(unescaped(name), known.add(unescaped(value)));
  }
  return [...values.keys()]
    .sort()
    .flatMap((name) => [...values.get(name)!].sort().map((value) => name + value))
    .join('');
}

function unescaped(text: string): string {
  const spaced = text.replaceAll('+', ' ');
  return spaced.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** As Twilio's own library does: with and without the port, and with the query as some back ends escape it. */
function urlForms(url: string): string[] {
  const [, scheme = '', user = '', host = '', port = '', path = '', query] =
    /^(https?:\/\/)([^/?#]*@)?(\[[^\]]*\]|[^/?#@:]*)(:[0-9]+)?(\/[^?]*)?(?:\?(.*))?$/i.exec(url) ?? [];
  const standard = scheme.toLowerCase() === 'https://' ? ':443' : ':80';
  const starts = [scheme + user + host + path, scheme + user + host + (port || standard) + path];
  if (query === undefined) return starts;
  const escaped = query.replace(/["'<>\x80-\xff]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
  return [query, escaped, stringify(parse(escaped))].flatMap((form) => starts.map((start) => `${start}?${form}`));
}

const maybe = (field: string): IdentityPart => ({ from: 'form', field, optional: true });

export const twilio: Sender = {
  name: 'twilio',
  title: 'Twilio',
  signature: {
    scheme: 'own',
    title:
      'HMAC-SHA1 (for shared keys HMAC-SHA256) over the URL and the sorted form parameters, or a URL with the hash of the body',
    usesUrl: true,
    check,
  },
  secret: 'the auth token of the account, or the secret of the shared key',
  decodeSecret: textSecret,
  identity: namedIfPossible({
    from: 'first-of',
    ways: [
      [inHeader('I-Twilio-Idempotency-Token')],
      [inForm('MessageSid'), inForm('MessageStatus'), maybe('RawDlrDoneDate')],
      [inForm('CallSid'), inForm('CallStatus'), inForm('SequenceNumber')],
    ],
  }),
  notCovered: ['I-Twilio-Idempotency-Token and every other header'],
  replayedBy: 'body',
  successStatus: 200,
  timeLimitMs: 15 * second,
  retryHorizonMs: 15 * second,
  setup: [
    'Console → Account → API keys & tokens: copy the auth token.',
    'Give the URL to the number, service or call; configure exactly what stands before its query as `publicUrl`. With overrides (`#rc=…`) leave the fragment out.',
  ],
  cautions: [
    'By default Twilio sends again only when it could not connect, and within 15 seconds in all; overrides in the URL’s fragment (`#rc=5&rp=all`) change that. Voice and incoming messages go to the fallback URL.',
    'The answer is what Twilio does next (TwiML): use sync mode. A delivery that nothing names is forwarded without a claim, so that a call goes on.',
    'Names and values are signed one after the other without anything between them: where a name ends and its value begins is not covered.',
    '`replayGuard` is off: a menu that is asked twice posts the same parameters twice, and the second answer would be missing.',
    'A body in JSON is covered only when the URL has bodySHA256, which Twilio adds; without it such a body is refused.',
  ],
  unverified: [
    'I-Twilio-Idempotency-Token, and that retries carry the same; it is not signed.',
    'Whether the fragment is part of what is signed.',
  ],
  sources: [
    'https://www.twilio.com/docs/usage/security',
    'https://www.twilio.com/docs/usage/webhooks/webhooks-connection-overrides',
    'https://github.com/twilio/twilio-node (src/webhooks/webhooks.ts)',
  ],
};
