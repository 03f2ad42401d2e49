/**
 * Deliveries that carry several events, taken apart: each element of the body's list is an event with a key of its own.
 * What is left of a body when elements are taken out is made of the bytes that came: an element goes with one comma
 * beside it, and nothing else changes. Nothing is ever written anew.
 */
import type { DeliveryKey, Verified } from './delivery.ts';
import { documentStart, hasOnly, listAt, type Range } from './elements-ranges.ts';
import { elementName, keyOf, type ElementPart } from './identify.ts';
import type { JsonPointer } from './json-pointer.ts';
import { jsonLookup } from './json-value.ts';

/** Where the elements lie in a body, from the top or from the element around them, and what names each of them. */
export type ElementRule =
  | { readonly list: JsonPointer; readonly each: readonly ElementPart[] }
  /**
   * The elements of this list hold lists of elements themselves, and go when the last of those goes. `beside`: what
   * else may be in them; anything more could be an event that nothing names.
   */
  | { readonly list: JsonPointer; readonly within: readonly ElementRule[]; readonly beside: readonly JsonPointer[] };

/** Each element costs a lock and a record on every voter; above this a delivery is handled as a whole. */
export const MAX_ELEMENTS = 2000;

/** Why a delivery cannot be taken apart: more than `MAX_ELEMENTS`; or it is not of the form that is known, or an element has no name. */
export type Undivided = 'too_many' | 'unnamed';

interface Element extends Range {
  /** Of an element that is an event. */
  readonly key: DeliveryKey | undefined;
  /** The same event stands further ahead in the same delivery. */
  readonly copy: boolean;
  readonly lists: readonly (readonly Element[])[];
}

export class Elements {
  /** What is to be claimed: each event once, in an order that is the same for all deliveries. */
  readonly keys: readonly DeliveryKey[];
  /** How many elements came. */
  readonly count: number;
  readonly #body: Buffer;
  readonly #elements: readonly Element[];

  constructor(body: Buffer, elements: readonly Element[], events: ReadonlyMap<string, DeliveryKey>, count: number) {
    this.#body = body;
    this.#elements = elements;
    this.keys = [...events.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
    this.count = count;
  }

  /** The body with the elements of these keys alone; undefined where that is the body as it came. */
  only(keys: ReadonlySet<string>): Buffer | undefined {
    const cuts = cutsIn(this.#elements, (element) => stays(element, keys)).filter(({ start, end }) => end > start);
    if (cuts.length === 0) return undefined;
    const ends = [...cuts.map(({ start }) => start), this.#body.length];
    return Buffer.concat(ends.map((end, i) => this.#body.subarray(i === 0 ? 0 : cuts[i - 1]!.end, end)));
  }
}

/** Takes a delivery apart whose body can be read. */
export function takeApart(rule: ElementRule, service: string, route: string, delivery: Verified): Elements | Undivided {
  const { body } = delivery;
  // Whether it is JSON at all: beyond this, only brackets and strings are looked at.
  if (jsonLookup(body).length(rule.list) === undefined) return 'unnamed';
  const events = new Map<string, DeliveryKey>();
  let count = 0;

  const read = (each: ElementRule, at: number): Element[] | Undivided => {
    const ranges = listAt(body, at, each.list, MAX_ELEMENTS);
    if (ranges === 'absent') return [];
    if (ranges === 'unfit') return 'unnamed';
    if (ranges.length > MAX_ELEMENTS) return 'too_many';
    const elements: Element[] = [];
    for (const range of ranges) {
      const element = 'each' in each ? event(each.each, range) : container(each, range);
      if (typeof element === 'string') return element;
      elements.push(element);
    }
    return elements;
  };
  const event = (each: readonly ElementPart[], range: Range): Element | Undivided => {
    count += 1;
    if (count > MAX_ELEMENTS) return 'too_many';
    const found = elementName(each, jsonLookup(body.subarray(range.start, range.end)));
    if (typeof found === 'string' || found.every(({ kind }) => kind === 'absent')) return 'unnamed';
    const key = keyOf(service, route, found);
    const copy = events.has(key.id);
    events.set(key.id, key);
    return { ...range, key, copy, lists: [] };
  };
  const container = (each: Extract<ElementRule, { within: unknown }>, range: Range): Element | Undivided => {
    if (!hasOnly(body, range.start, [...each.within.map(({ list }) => list), ...each.beside])) return 'unnamed';
    const lists: (readonly Element[])[] = [];
    for (const inner of each.within) {
      const elements = read(inner, range.start);
      if (typeof elements === 'string') return elements;
      lists.push(elements);
    }
    return lists.some((list) => list.length > 0) ? { ...range, key: undefined, copy: false, lists } : 'unnamed';
  };

  const elements = read(rule, documentStart(body));
  if (typeof elements === 'string') return elements;
  return count === 0 ? 'unnamed' : new Elements(body, elements, events, count);
}

function stays({ key, copy, lists }: Element, keys: ReadonlySet<string>): boolean {
  return key === undefined ? lists.some((list) => list.some((one) => stays(one, keys))) : !copy && keys.has(key.id);
}

/** In their order. What stays keeps the comma and the white space before it, except the first of a list. */
function cutsIn(list: readonly Element[], stay: (element: Element) => boolean): Range[] {
  const [first, last] = [list[0], list.at(-1)];
  if (!first || !last) return [];
  const kept = list.flatMap((element, i) => (stay(element) ? [i] : []));
  if (kept.length === 0) return [{ start: first.start, end: last.end }];
  return [
    { start: first.start, end: list[kept[0]!]!.start },
    ...kept.flatMap((index, i) => {
      const { end, lists } = list[index]!;
      const next = kept[i + 1] ?? list.length;
      return [...lists.flatMap((inner) => cutsIn(inner, stay)), { start: end, end: list[next - 1]!.end }];
    }),
  ];
}
