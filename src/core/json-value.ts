/** Strings and numbers out of a JSON body, such that what differs in the body differs here. */
import type { JsonPointer } from './json-pointer.ts';

/** `text` of a number is how the body spells it: as a JavaScript number, long ids would be rounded to one another. */
export interface JsonValue {
  readonly kind: 'string' | 'number';
  readonly text: string;
}

export interface JsonLookup {
  /** `undefined`: nothing there that could name anything (absent, null, boolean, object, list, or the body is not JSON). */
  value(pointer: JsonPointer): JsonValue | undefined;
  /** Elements of the list there; undefined where there is none. */
  length(pointer: JsonPointer): number | undefined;
}

/**
 * A look-up into a body, parsed when first asked. As with `JSON.parse` the last of two equal keys wins.
 * A byte order mark before the JSON is skipped; bytes that are no UTF-8 are read as U+FFFD.
 */
export function jsonLookup(body: Buffer): JsonLookup {
  let text: string | undefined;
  let plain: unknown;
  let exact: unknown;
  const find = (pointer: JsonPointer): unknown => {
    if (text === undefined) {
      text = body.toString('utf8').replace(/^\ufeff/, '');
      plain = parse(text);
    }
    return at(plain, pointer);
  };
  return {
    value(pointer) {
      const value = find(pointer);
      if (typeof value === 'string') return { kind: 'string', text: value };
      if (typeof value !== 'number') return undefined;
      // Only now, because it is slower and recurses: a body nested too deeply for it has no such number.
      exact ??= parse(text!, keepSource);
      const source = at(exact, pointer);
      return source instanceof NumberSource ? { kind: 'number', text: source.text } : undefined;
    },
    length(pointer) {
      const list = find(pointer);
      return Array.isArray(list) ? list.length : undefined;
    },
  };
}

class NumberSource {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

function keepSource(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  return typeof value === 'number' && context?.source !== undefined ? new NumberSource(context.source) : value;
}

function parse(text: string, reviver?: typeof keepSource): unknown {
  try {
    return JSON.parse(text, reviver);
  } catch {
    return undefined;
  }
}

/** Own members only. A list's length is one of them, but has no source in the body. */
function at(document: unknown, pointer: JsonPointer): unknown {
  let value = document;
  for (const token of pointer) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, token)) return undefined;
    value = (value as Record<string, unknown>)[token];
  }
  return value;
}
