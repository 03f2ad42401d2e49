/** Signatures in a header, over a template of timestamp, id, URL and body. */
import type { Encoding } from './bytes.ts';
import { allHeaders, type RawHeaders, type Received, type Rejected } from './delivery.ts';
import {
  afterPrefix,
  notAtPublicUrl,
  onlyLine,
  rejected,
  type Checked,
  type Circumstances,
} from './signature-items.ts';
import { matchingKey, type Algorithm } from './signature-match.ts';
import { staleness, timestampText, type TimestampRule } from './signature-timestamp.ts';
import { containsDelimiter, signedPieces } from './signed-template.ts';

export interface TemplateRule {
  readonly scheme: Algorithm;
  readonly signature: SignatureHeader;
  /** Required exactly when `signed` names `{timestamp}`; one in the body is signed with the body. */
  readonly timestamp?: TimestampRule | undefined;
  /** Header of the signed message id; required exactly when `signed` names `{id}`. */
  readonly idHeader?: string | undefined;
  /** What is signed: literal text around `{body}`, `{timestamp}`, `{id}`, `{method}`, `{url}`, e.g. `v0:{timestamp}:{body}`. */
  readonly signed: string;
  /** Ways in which the sender may have written the URL that it signed. Default: as it is. */
  readonly urlForms?: ((url: string) => readonly string[]) | undefined;
  /** A header that says which version of the scheme was used; the rule is for this one only. */
  readonly version?: { readonly header: string; readonly value: string } | undefined;
}

/** `Stripe-Signature: t=1,v1=ab,v1=cd` is separator `,` and prefix `v1=`; `sha256=ab` is prefix `sha256=` alone. */
export interface SignatureHeader {
  readonly header: string;
  /** Where a sender in rotation puts further signatures: lines of the same name, or `<header>-1`, `<header>-2`, … Default: one line. */
  readonly several?: 'lines' | 'numbered' | undefined;
  /** Stands before each signature; items that start otherwise are of another version and prove nothing. */
  readonly prefix: string;
  /** Between the items of the header; without one the whole value is one item. */
  readonly separator?: string | undefined;
  /** hex is taken in either case; base64 is the padded standard alphabet only. */
  readonly encoding: Encoding;
}

/** What a delivery says about its signature, not yet believed. */
interface Claimed {
  /** In the order of the header; so many are looked at. */
  readonly signatures: readonly string[];
  readonly timestamp: string | undefined;
  readonly id: string | undefined;
}

/** Senders in rotation send two or three; DocuSign up to a hundred. */
const maxSignatures = 100;

/** The window is judged last: `stale_signature` always means a right signature, that is clocks or a replay. */
export function checkTemplate(rule: TemplateRule, received: Received, at: Circumstances): Checked {
  const claimed = readHeaders(rule, received);
  if ('kind' in claimed) return claimed;
  const { header, encoding } = rule.signature;
  const urls = urlsOf(rule, at.url);
  if (urls.length === 0) return rejected('bad_signature', notAtPublicUrl);
  for (const url of urls) {
    const signed = (secret: Buffer | undefined) => signedBytes(rule, claimed, received, url, secret);
    const key = matchingKey(rule.scheme, encoding, at.secrets, claimed.signatures, signed);
    if (key === undefined) continue;
    const stale = rule.timestamp && staleness(rule.timestamp, claimed.timestamp ?? '', at.wallMs);
    return stale ?? { kind: 'matched', key, signedId: claimed.id };
  }
  return rejected('bad_signature', `the signature in header ${header} does not match`);
}

/** Whether a delivery carries everything that this rule reads, in the rule's version. */
export function appliesTo(rule: TemplateRule, headers: RawHeaders): boolean {
  const timestamp = rule.timestamp?.from;
  const names = [rule.idHeader, timestamp && 'header' in timestamp ? timestamp.header : undefined];
  const lines = signatureLines(rule.signature, headers);
  const signed = !('kind' in lines) || lines.reason !== 'missing_signature';
  const complete = names.every((name) => name === undefined || allHeaders(headers, name).some((value) => value !== ''));
  return signed && complete && isVersion(rule, headers);
}

function isVersion({ version }: TemplateRule, headers: RawHeaders): boolean {
  return version === undefined || allHeaders(headers, version.header).join() === version.value;
}

function readHeaders(rule: TemplateRule, received: Received): Claimed | Rejected {
  const { headers } = received;
  const { header, prefix, separator } = rule.signature;
  const lines = signatureLines(rule.signature, headers);
  if ('kind' in lines) return lines;
  if (!isVersion(rule, headers))
    return rejected('bad_signature', `header ${rule.version?.header} is not ${rule.version?.value}`);
  const items =
    separator === undefined ? lines : lines.flatMap((line) => line.split(separator)).map((item) => item.trim());
  const timestamp = rule.timestamp && timestampText(rule.timestamp, items, received);
  if (typeof timestamp === 'object') return timestamp;
  const id = rule.idHeader === undefined ? undefined : onlyLine(headers, rule.idHeader);
  if (typeof id === 'object') return id;
  if (id !== undefined && containsDelimiter(id, rule.signed)) {
    return rejected(
      'bad_signature',
      `header ${rule.idHeader} contains what separates it from the rest of what is signed`,
    );
  }
  const signatures = afterPrefix(items, prefix).slice(0, maxSignatures);
  if (signatures.length === 0)
    return rejected('bad_signature', `header ${header} has no signature that starts with ${prefix}`);
  return { signatures, timestamp, id };
}

function signatureLines({ header, several }: SignatureHeader, headers: RawHeaders): string[] | Rejected {
  if (several === undefined) {
    const line = onlyLine(headers, header);
    return typeof line === 'string' ? [line] : line;
  }
  const wanted = header.toLowerCase();
  const lines = headers.flatMap((name, i) => {
    if (i % 2 === 1) return [];
    const rest = name.toLowerCase().startsWith(wanted) ? name.slice(wanted.length) : undefined;
    const matches = rest !== undefined && (several === 'lines' ? rest === '' : /^-[0-9]{1,3}$/.test(rest));
    return matches ? [headers[i + 1]!.trim()] : [];
  });
  const found = lines.filter((line) => line !== '');
  return found.length > 0 ? found : rejected('missing_signature', `header ${header} is missing`);
}

function urlsOf(rule: TemplateRule, url: string | undefined): readonly (string | undefined)[] {
  if (!rule.signed.includes('{url}')) return [undefined];
  if (url === undefined) return [];
  return rule.urlForms?.(url) ?? [url];
}

function signedBytes(
  rule: TemplateRule,
  { timestamp = '', id = '' }: Claimed,
  { method, body }: Received,
  url: string | undefined,
  secret: Buffer | undefined,
): Buffer[] {
  return signedPieces(rule.signed).map((piece) => {
    switch (piece) {
      case '{body}':
        return body;
      // Header and request line are what latin1 makes of the wire's bytes: this gives the bytes back.
      case '{timestamp}':
        return Buffer.from(timestamp, 'latin1');
      case '{id}':
        return Buffer.from(id, 'latin1');
      case '{url}':
        return Buffer.from(url ?? '', 'latin1');
      case '{method}':
        return Buffer.from(method, 'latin1');
      case '{secret}':
        return secret ?? Buffer.alloc(0);
      default:
        return Buffer.from(piece, 'utf8');
    }
  });
}
