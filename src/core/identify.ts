/** Where the key comes from: which parts of a delivery name its event, and what becomes of them. */
import { createHash } from 'node:crypto';
import { allHeaders, type DeliveryKey, type Rejected, type Verified } from './delivery.ts';
import { formField } from './form-field.ts';
import { jsonLookup } from './json-value.ts';
import { formatPointer, type JsonPointer } from './json-pointer.ts';

/** What names an event on a route: data, from a sender preset or from configuration. */
export interface IdentityRule {
  /** Each must be there; all of them together, in this order, are the name. */
  readonly parts: readonly IdentityPart[];
  /** The body's SHA-256 is a part as well. */
  readonly bodyHash: boolean;
  /** What happens to a delivery without an identity. */
  readonly missing: 'reject';
  /** Within what identities are unique: each route has its own. */
  readonly scope: 'route';
}

export type IdentityPart =
  /** The first of these headers that is there. */
  | { readonly from: 'header'; readonly names: readonly [string, ...string[]] }
  /** A string or number in the JSON body. `optional`: a part of the name where there is one. */
  | { readonly from: 'json'; readonly pointer: JsonPointer; readonly optional?: boolean | undefined }
  /** A field of an `application/x-www-form-urlencoded` body. */
  | { readonly from: 'form'; readonly field: string }
  /** The message id that the signature covers (`HmacRule.idHeader`). */
  | { readonly from: 'signed-id' };

/** One part as it was found. The kind is part of the name: header `1`, JSON `1` and JSON `"1"` are three names. */
interface Found {
  readonly kind: 'header' | 'string' | 'number' | 'form' | 'signed-id' | 'body' | 'absent';
  readonly bytes: Buffer;
}

/**
 * Names the event. A part that is missing, empty, blank or ambiguous leaves the delivery without an
 * identity (`no_identity`): a stand-in would be shared by every delivery that lacks it.
 */
export function identify(
  rule: IdentityRule,
  service: string,
  route: string,
  delivery: Verified,
): DeliveryKey | Rejected {
  const found = findParts(rule, delivery);
  if (typeof found === 'string') return { kind: 'rejected', reason: 'no_identity', message: found };
  const hash = createHash('sha256');
  for (const bytes of [utf8(service), utf8(route), ...found.flatMap((part) => [utf8(part.kind), part.bytes])]) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    hash.update(length).update(bytes);
  }
  return { id: hash.digest().subarray(0, 16).toString('base64url') } as DeliveryKey;
}

/** All parts in the rule's order, or what is wrong with the first that does not name anything. */
function findParts(rule: IdentityRule, delivery: Verified): Found[] | string {
  const json = jsonLookup(delivery.body);
  const found: Found[] = [];
  for (const part of rule.parts) {
    const one = findPart(part, delivery, json);
    if (typeof one !== 'string') found.push(one);
    else if (part.from === 'json' && part.optional === true) found.push({ kind: 'absent', bytes: Buffer.alloc(0) });
    else return one;
  }
  if (rule.bodyHash) found.push({ kind: 'body', bytes: createHash('sha256').update(delivery.body).digest() });
  return found.some((part) => part.kind !== 'absent') ? found : 'nothing names the event';
}

function findPart(part: IdentityPart, delivery: Verified, json: ReturnType<typeof jsonLookup>): Found | string {
  switch (part.from) {
    case 'header': {
      const name = part.names.find((one) => allHeaders(delivery.headers, one).length > 0) ?? part.names[0];
      return only('header', allHeaders(delivery.headers, name), `header ${name}`);
    }
    case 'json': {
      const value = json(part.pointer);
      const name = `a string or number at ${formatPointer(part.pointer)} of a JSON body`;
      return value === undefined ? `${name} is missing` : text(value.kind, value.text, name);
    }
    case 'form':
      return only('form', formField(delivery.body, part.field), `form field ${part.field}`);
    case 'signed-id':
      return text('signed-id', delivery.signedId, 'the signed message id');
  }
}

/** Repeating itself is harmless; of two different values nobody knows which one the application would take. */
function only(kind: Found['kind'], values: readonly string[], name: string): Found | string {
  return new Set(values).size > 1 ? `${name} has more than one value` : text(kind, values[0], name);
}

/**
 * UTF-16 keeps lone surrogates apart, which JSON can escape and UTF-8 cannot hold. U+FFFD stands for bytes
 * that were no UTF-8: two different names would look the same, so it names nothing.
 */
function text(kind: Found['kind'], value: string | undefined, name: string): Found | string {
  if (value === undefined) return `${name} is missing`;
  if (value.trim() === '') return `${name} is empty`;
  if (value.includes('\ufffd')) return `${name} is not valid text`;
  return { kind, bytes: Buffer.from(value, 'utf16le') };
}

const utf8 = (value: string): Buffer => Buffer.from(value, 'utf8');
