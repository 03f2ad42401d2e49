/** The event that an operator means: by the ids that name it, given in the route's order, or by its key. */
import type { DeliveryKey } from './delivery.ts';
import { absent, keyOf, text, type Found, type IdentityPart } from './identify.ts';
import { formatPointer } from './json-pointer.ts';
import type { Route } from './route.ts';

export interface Given {
  readonly route: string;
  readonly ids: readonly string[];
  /** As the application was told it in `Hookonce-Key`. */
  readonly key?: string | undefined;
}

export interface GivenEvent {
  readonly route: Route;
  readonly key: DeliveryKey;
  /** How each id was read. */
  readonly named: readonly string[];
}

/** Or what is wrong with it, for whoever gave it. */
export function findEvent(service: string, routes: readonly Route[], given: Given): GivenEvent | string {
  const route = routes.find(({ name }) => name === given.route);
  if (!route) return `there is no route ${given.route}; there is ${routes.map(({ name }) => name).join(', ')}`;
  if (given.key !== undefined) {
    if (given.ids.length > 0) return 'give either ids or a key, not both';
    if (!/^[\w-]{22}$/.test(given.key)) return 'a key has 22 letters, digits, - and _, as in the header Hookonce-Key';
    return { route, key: { id: given.key } as DeliveryKey, named: [] };
  }
  const parts = partsOf(route);
  const titles = parts.map(titleOf);
  if (!titles.every((title) => title !== undefined))
    return `route ${route.name} names events in more than one way: give the key, as in the header Hookonce-Key`;
  if (given.ids.length !== parts.length)
    return `route ${route.name} names an event by ${parts.length === 1 ? 'one id' : `${parts.length} ids`}, found ${given.ids.length}; needs ${parts.map((part, index) => `${titles[index]}${isOptional(part) ? " ('' where there is none)" : ''}`).join(', then ')}`;
  const found = parts.map((part, index) => read(part, titles[index]!, given.ids[index]!));
  const problem = found.find((one) => typeof one === 'string');
  if (problem !== undefined) return problem;
  const all = found as Found[];
  if (all.every(({ kind }) => kind === 'absent')) return 'nothing names the event';
  return {
    route,
    key: keyOf(service, route.name, all),
    named: all.map(({ kind }, index) => `${titles[index]}${KINDS[kind] ?? ''}`),
  };
}

/** What an event is named by: on a route that claims each element of a delivery, what names an element. */
function partsOf({ identity, elements }: Route): readonly IdentityPart[] {
  if (elements && 'each' in elements) return elements.each.map((part) => ({ from: 'json', ...part }));
  return [...identity.parts, ...(identity.bodyHash ? [{ from: 'body' } as const] : [])];
}

/** Of JSON, the type is part of the name. */
const KINDS: Partial<Record<Found['kind'], string>> = { string: ', a text', number: ', a number', absent: ': none' };

const isOptional = (part: IdentityPart): boolean => 'optional' in part && part.optional === true;

/** undefined: no single id can stand for it. */
function titleOf(part: IdentityPart): string | undefined {
  switch (part.from) {
    case 'header':
      return `header ${part.names[0]}`;
    case 'json':
      return `JSON ${formatPointer(part.pointer)}`;
    case 'form':
      return `form field ${part.field}`;
    case 'signed-id':
      return 'the signed message id';
    case 'body':
      return "the body's SHA-256 in hex";
    case 'json-list':
    case 'first-of':
      return undefined;
  }
}

function read(part: IdentityPart, title: string, id: string): Found | string {
  if (id === '' && isOptional(part)) return absent;
  switch (part.from) {
    case 'json':
      return jsonId(title, id);
    case 'body':
      return /^[0-9a-f]{64}$/i.test(id)
        ? { kind: 'body', bytes: Buffer.from(id, 'hex') }
        : `${title} has 64 digits, found ${id.length}`;
    case 'header':
    case 'form':
    case 'signed-id':
      return text(part.from, part.from === 'header' ? id.trim() : id, title);
    case 'json-list':
    case 'first-of':
      return `${title} cannot be given`;
  }
}

/** What is written like a JSON number is one; in double quotes, a JSON string; anything else is a text as it stands. */
function jsonId(title: string, id: string): Found | string {
  if (/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(id)) return text('number', id, title);
  if (!id.startsWith('"')) return text('string', id, title);
  try {
    return text('string', String(JSON.parse(id)), title);
  } catch {
    return `${title} begins with a quote, but is no JSON string`;
  }
}
