/**
 * Where things lie in a JSON body, in bytes. Only for bodies that `JSON.parse` has accepted: then strings and brackets
 * are all there is to look at. Nothing here recurses with the depth of the body.
 */
import type { JsonPointer } from './json-pointer.ts';

/** Bytes from `start` up to, but not including, `end`. */
export interface Range {
  readonly start: number;
  readonly end: number;
}

export interface Member {
  readonly name: string;
  /** Where its value begins. */
  readonly at: number;
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [BRACE, BRACKET] = [0x7b, 0x5b];
const OPENING = new Set([BRACE, BRACKET]);
const CLOSING = new Set([0x7d, 0x5d]);
const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);

/** Where the document begins: after a byte order mark and white space. */
export function documentStart(json: Buffer): number {
  return skipSpace(json, json[0] === 0xef && json[1] === 0xbb && json[2] === 0xbf ? 3 : 0);
}

/**
 * The elements of the list that `pointer` leads to from the value at `at`, through objects; of more than `most` one more
 * than that. `absent`: it leads nowhere; `unfit`: to something else, or a name on the way stands there twice, so that
 * readers differ in what they see.
 */
export function listAt(json: Buffer, at: number, pointer: JsonPointer, most: number): Range[] | 'absent' | 'unfit' {
  let here = at;
  for (const token of pointer) {
    if (json[here] !== BRACE) return 'unfit';
    const [found, again] = membersAt(json, here).filter(({ name }) => name === token);
    if (again) return 'unfit';
    if (!found) return 'absent';
    here = found.at;
  }
  return json[here] === BRACKET ? elementsAt(json, here, most) : 'unfit';
}

/** Whether the object at `at` has nothing but what lies on one of these paths, or below its end. */
export function hasOnly(json: Buffer, at: number, paths: readonly JsonPointer[]): boolean {
  return (
    json[at] === BRACE &&
    membersAt(json, at).every((member) => {
      const rest = paths.filter(([first]) => first === member.name).map((path) => path.slice(1));
      return rest.length > 0 && (rest.some((path) => path.length === 0) || hasOnly(json, member.at, rest));
    })
  );
}

/** `at`: the opening brace. */
function membersAt(json: Buffer, at: number): Member[] {
  const members: Member[] = [];
  for (let here = skipSpace(json, at + 1); json[here] === QUOTE;) {
    const end = skipString(json, here);
    const name = JSON.parse(json.toString('utf8', here, end)) as string;
    const value = skipSpace(json, skipSpace(json, end) + 1);
    members.push({ name, at: value });
    here = skipComma(json, skipValue(json, value));
  }
  return members;
}

/** `at`: the opening bracket. */
function elementsAt(json: Buffer, at: number, most: number): Range[] {
  const elements: Range[] = [];
  let start = skipSpace(json, at + 1);
  while (elements.length <= most && start < json.length && !CLOSING.has(json[start]!)) {
    const end = skipValue(json, start);
    elements.push({ start, end });
    start = skipComma(json, end);
  }
  return elements;
}

function skipValue(json: Buffer, at: number): number {
  let depth = 0;
  for (let here = at; here < json.length;) {
    const byte = json[here]!;
    if (byte === QUOTE) here = skipString(json, here);
    else if (OPENING.has(byte) || CLOSING.has(byte)) {
      depth += OPENING.has(byte) ? 1 : -1;
      here += 1;
    } else if (depth > 0) {
      here += 1;
      continue;
    } else {
      while (here < json.length && !SPACE.has(json[here]!) && json[here] !== COMMA && !CLOSING.has(json[here]!))
        here += 1;
    }
    if (depth === 0) return here;
  }
  return json.length;
}

/** `at`: the opening quote. No byte of a character beyond ASCII looks like a quote or a backslash. */
function skipString(json: Buffer, at: number): number {
  let here = at + 1;
  while (here < json.length && json[here] !== QUOTE) here += json[here] === BACKSLASH ? 2 : 1;
  return here + 1;
}

function skipComma(json: Buffer, at: number): number {
  const here = skipSpace(json, at);
  return json[here] === COMMA ? skipSpace(json, here + 1) : here;
}

function skipSpace(json: Buffer, at: number): number {
  let here = at;
  while (SPACE.has(json[here]!)) here += 1;
  return here;
}
