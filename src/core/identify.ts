/** Where the key comes from: which parts of a delivery name its event, and what becomes of them. */
import { createHash } from 'node:crypto';
import { allHeaders, type DeliveryKey, type Rejected, type Verified } from './delivery.ts';
import { digest, utf8 } from './digest.ts';
import { formField } from './form-field.ts';
import { formatPointer, type JsonPointer } from './json-pointer.ts';
import { jsonLookup, type JsonLookup } from './json-value.ts';

/** What names an event on a route: data, from a sender preset or from configuration. */
export interface IdentityRule {
  /** Each must be there; all of them together, in this order, are the name. */
  readonly parts: readonly IdentityPart[];
  /** The body's SHA-256 is a part as well. */
  readonly bodyHash: boolean;
  /** What happens to a delivery without an identity: refused, forwarded without a claim, or named by its body. */
  readonly missing: 'reject' | 'forward' | 'bodyHash';
  /** Within what identities are unique: each route has its own. */
  readonly scope: 'route';
}

/** `optional`: a part of the name where there is one. */
export type IdentityPart =
  /** The first of these headers that is there. */
  | { readonly from: 'header'; readonly names: readonly [string, ...string[]] }
  /** A string or number in the JSON body. */
  | { readonly from: 'json'; readonly pointer: JsonPointer; readonly optional?: boolean | undefined }
  /** Strings or numbers in every element of a list in the JSON body: the delivery as a whole is named by all its elements. */
  | { readonly from: 'json-list'; readonly list: JsonPointer; readonly each: readonly ElementPart[] }
  /** A field of an `application/x-www-form-urlencoded` body. */
  | { readonly from: 'form'; readonly field: string; readonly optional?: boolean | undefined }
  /** The message id that the signature covers (`TemplateRule.idHeader`). */
  | { readonly from: 'signed-id' }
  /** The body's SHA-256. */
  | { readonly from: 'body' }
  /** The first of these ways to name the event whose parts are all there. */
  | { readonly from: 'first-of'; readonly ways: readonly (readonly IdentityPart[])[] };

export interface ElementPart {
  /** Starts at the element. */
  readonly pointer: JsonPointer;
  readonly optional?: boolean | undefined;
}

/** One part as it was found. The kind is part of the name: header `1`, JSON `1` and JSON `"1"` are three names. */
export interface Found {
  readonly kind:
    | 'header'
    | 'string'
    | 'number'
    | 'form'
    | 'signed-id'
    | 'body'
    | 'absent'
    | 'replay'
    | 'resource'
    | 'versions';
  readonly bytes: Buffer;
}

export const absent: Found = { kind: 'absent', bytes: Buffer.alloc(0) };

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
  const found = findParts(rule.parts, delivery, jsonLookup(delivery.body));
  if (typeof found === 'string') return { kind: 'rejected', reason: 'no_identity', message: found };
  if (rule.bodyHash) found.push(bodyPart(delivery));
  if (found.every((part) => part.kind === 'absent'))
    return { kind: 'rejected', reason: 'no_identity', message: 'nothing names the event' };
  return keyOf(service, route, found);
}

/**
 * Names the content: what the signature covers of a delivery, whatever id it came under. `of`: the body, or
 * the signed message id where the signature does not cover the body. Undefined without such an id.
 */
export function contentKey(
  of: 'body' | 'signed-id',
  service: string,
  route: string,
  delivery: Verified,
): DeliveryKey | undefined {
  const content =
    of === 'body' ? bodyPart(delivery) : findPart({ from: 'signed-id' }, delivery, jsonLookup(delivery.body));
  return typeof content === 'string'
    ? undefined
    : keyOf(service, route, [{ ...absent, kind: 'replay' }, ...[content].flat()]);
}

/** Whether names are looked for inside the body, which must be legible then. */
export function readsBody(parts: readonly IdentityPart[]): boolean {
  return parts.some((part) =>
    part.from === 'first-of' ? part.ways.some(readsBody) : ['json', 'json-list', 'form'].includes(part.from),
  );
}

export function keyOf(service: string, route: string, found: readonly Found[]): DeliveryKey {
  const parts = [utf8(service), utf8(route), ...found.flatMap((part) => [utf8(part.kind), part.bytes])];
  return { id: digest(parts) } as DeliveryKey;
}

/** Each part for itself, whatever the others are; undefined where it cannot be read. */
export function readEach(parts: readonly IdentityPart[], delivery: Verified): (Found[] | undefined)[] {
  const json = jsonLookup(delivery.body);
  return parts.map((part) => {
    const found = findParts([part], delivery, json);
    return typeof found === 'string' ? undefined : found;
  });
}

/** All parts in their order, or what is wrong with the first that does not name anything. */
function findParts(parts: readonly IdentityPart[], delivery: Verified, json: JsonLookup): Found[] | string {
  const found: Found[] = [];
  for (const part of parts) {
    const one = findPart(part, delivery, json);
    if (typeof one !== 'string') found.push(...[one].flat());
    else if ('optional' in part && part.optional === true) found.push(absent);
    else return one;
  }
  return found;
}

function findPart(part: IdentityPart, delivery: Verified, json: JsonLookup): Found | Found[] | string {
  switch (part.from) {
    case 'header': {
      const name = part.names.find((one) => allHeaders(delivery.headers, one).length > 0) ?? part.names[0];
      return only('header', allHeaders(delivery.headers, name), `header ${name}`);
    }
    case 'json':
      return jsonPart(json, part.pointer);
    case 'json-list':
      return elements(part.list, part.each, json);
    case 'form':
      return only('form', formField(delivery.body, part.field), `form field ${part.field}`);
    case 'signed-id':
      return text('signed-id', delivery.signedId, 'the signed message id');
    case 'body':
      return bodyPart(delivery);
    case 'first-of': {
      const ways = part.ways.map((way) => findParts(way, delivery, json));
      return ways.find((way) => typeof way !== 'string') ?? ways[0] ?? 'nothing names the event';
    }
  }
}

/** Enough of the body's hash to tell another one from it by accident; never as proof. */
export function fingerprintOf({ body }: Verified): string {
  return createHash('sha256').update(body).digest().subarray(0, 6).toString('base64url');
}

function bodyPart(delivery: Verified): Found {
  return { kind: 'body', bytes: createHash('sha256').update(delivery.body).digest() };
}

function jsonPart(json: JsonLookup, pointer: JsonPointer): Found | string {
  const value = json.value(pointer);
  const name = `a string or number at ${formatPointer(pointer)} of a JSON body`;
  return value === undefined ? `${name} is missing` : text(value.kind, value.text, name);
}

/** Without elements there is nothing that could be named. */
function elements(list: JsonPointer, each: readonly ElementPart[], json: JsonLookup): Found[] | string {
  const count = json.length(list) ?? 0;
  if (count === 0) return `a list with elements at ${formatPointer(list)} of a JSON body is missing`;
  const found: Found[] = [];
  for (let i = 0; i < count; i += 1) {
    const element = elementName(each, json, [...list, String(i)]);
    if (typeof element === 'string') return element;
    found.push(...element);
  }
  return found;
}

/** What names the element that lies at `at`, or what is missing. */
export function elementName(each: readonly ElementPart[], json: JsonLookup, at: JsonPointer = []): Found[] | string {
  const found: Found[] = [];
  for (const { pointer, optional } of each) {
    const one = jsonPart(json, [...at, ...pointer]);
    if (typeof one !== 'string') found.push(one);
    else if (optional === true) found.push(absent);
    else return one;
  }
  return found;
}

/** Repeating itself is harmless; of two different values nobody knows which one the application would take. */
function only(kind: Found['kind'], values: readonly string[], name: string): Found | string {
  return new Set(values).size > 1 ? `${name} has more than one value` : text(kind, values[0], name);
}

/**
 * UTF-16 keeps lone surrogates apart, which JSON can escape and UTF-8 cannot hold. U+FFFD stands for bytes
 * that were no UTF-8: two different names would look the same, so it names nothing.
 */
export function text(kind: Found['kind'], value: string | undefined, name: string): Found | string {
  if (value === undefined) return `${name} is missing`;
  if (value.trim() === '') return `${name} is empty`;
  if (value.includes('\ufffd')) return `${name} is not valid text`;
  return { kind, bytes: Buffer.from(value, 'utf16le') };
}
