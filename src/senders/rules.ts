/** Words that the presets share. */
import type { Encoding } from '../core/bytes.ts';
import type { IdentityPart, IdentityRule } from '../core/identify.ts';
import { parsePointer, type JsonPointer } from '../core/json-pointer.ts';
import type { Algorithm } from '../core/signature-match.ts';
import type { SignatureHeader, TemplateRule } from '../core/signature-template.ts';

export const second = 1_000;
export const minute = 60 * second;
export const hour = 60 * minute;
export const day = 24 * hour;

/** The commonest scheme: one header with an HMAC of the body alone. */
export function signedBody(
  header: string,
  encoding: Encoding,
  more: { prefix?: string; scheme?: Algorithm; several?: SignatureHeader['several'] } = {},
): TemplateRule {
  const { prefix = '', scheme = 'hmac-sha256', several } = more;
  return { scheme, signature: { header, prefix, encoding, several }, signed: '{body}' };
}

/** What names an event; a delivery without it is refused, so that the sender's operators see it. */
export const namedBy = (...parts: IdentityPart[]): IdentityRule => ({
  parts,
  bodyHash: false,
  missing: 'reject',
  scope: 'route',
});

/** For senders with deliveries that nothing names: to refuse them would lose them, to take them for one another too. */
export const namedIfPossible = (...parts: IdentityPart[]): IdentityRule => ({
  ...namedBy(...parts),
  missing: 'forward',
});

export const pointer = (text: string): JsonPointer => {
  const parsed = parsePointer(text);
  if (parsed === undefined) throw new Error(`${text} is no JSON pointer`);
  return parsed;
};

export const inHeader = (...names: [string, ...string[]]): IdentityPart => ({ from: 'header', names });
export const inJson = (at: string): IdentityPart => ({ from: 'json', pointer: pointer(at) });
export const maybeInJson = (at: string): IdentityPart => ({ from: 'json', pointer: pointer(at), optional: true });
export const inForm = (field: string): IdentityPart => ({ from: 'form', field });
export const body: IdentityPart = { from: 'body' };
export const signedId: IdentityPart = { from: 'signed-id' };

/** The first of these places in the JSON body that holds a string or number. */
export const firstOf = (...places: string[]): IdentityPart => ({
  from: 'first-of',
  ways: places.map((at) => [inJson(at)]),
});

/** All elements of a list in the JSON body, by these values in each; a `?` at the end of a pointer: where there is one. */
export const inEach = (list: string, ...each: string[]): Extract<IdentityPart, { from: 'json-list' }> => ({
  from: 'json-list',
  list: pointer(list),
  each: each.map((at) => ({ pointer: pointer(at.replace(/\?$/, '')), optional: at.endsWith('?') })),
});
