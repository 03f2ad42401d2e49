/**
 * Which route a request target belongs to.
 *
 * Applications read paths differently: one merges slashes, another decodes `%2F` first, a third ignores
 * case. A delivery must not get past its route's signature by a spelling that only the application takes
 * for the configured path. So a target is matched in every reading that an application may make of it:
 *
 *  - one route in any of them: that route;
 *  - none in all of them: unmatched;
 *  - two different routes: ambiguous. Signed for one, it could be taken for the other, so it is refused.
 *
 * What is forwarded is the target as it came, whatever the reading.
 */
import type { Route } from '../core/route.ts';

export type Match =
  | { readonly kind: 'route'; readonly route: Route }
  | { readonly kind: 'none' }
  | { readonly kind: 'ambiguous' };

/**
 * `path` of a route is exact, or a prefix that ends in `/*`: `/a/*` takes `/a/x` and deeper, not `/a`.
 * An exact path wins over a prefix, a longer prefix over a shorter one.
 * Throws when two routes have the same path in one of its readings.
 */
export function createRouter(routes: readonly Route[]): (target: string) => Match {
  const exact = new Map<string, Route>();
  const prefixes: { readonly start: string; readonly route: Route }[] = [];
  for (const route of routes) {
    const prefix = route.path.endsWith('/*');
    const path = resolve(decode(bytes(prefix ? route.path.slice(0, -2) : route.path).toLowerCase()));
    const start = path === '/' ? '/' : `${path}/`;
    const rival = prefix ? prefixes.find((other) => other.start === start)?.route : exact.get(path);
    if (rival !== undefined) throw new Error(`routes ${rival.name} and ${route.name} have the same path`);
    if (prefix) prefixes.push({ start, route });
    else exact.set(path, route);
  }
  prefixes.sort((a, b) => b.start.length - a.start.length);

  const find = (path: string): Route | undefined =>
    exact.get(path) ?? prefixes.find(({ start }) => path.length > start.length && path.startsWith(start))?.route;

  return (target) => {
    const found = new Set<Route>();
    for (const path of readings(target)) {
      const route = find(path);
      if (route !== undefined) found.add(route);
    }
    const [route, other] = found;
    if (route === undefined) return { kind: 'none' };
    return other === undefined ? { kind: 'route', route } : { kind: 'ambiguous' };
  };
}

/**
 * The target in origin form: of an absolute one the authority is dropped (RFC 9112 3.2.1), so that it
 * never chooses a host. undefined: it is no path (`*`, an authority).
 */
export function originForm(target: string): string | undefined {
  if (target.startsWith('/')) return target;
  const rest = /^[a-z][a-z0-9+.-]*:\/\/[^/?#\\]*(.*)$/i.exec(target)?.[1];
  if (rest === undefined) return undefined;
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Lower case, no escapes, no empty or dotted segments: everybody reads it the same way. */
const PLAIN = /^(?:\/[a-z0-9_~-][a-z0-9._~-]*)+$/;

function readings(target: string): Iterable<string> {
  const path = /^[^?#]*/.exec(target)![0];
  if (PLAIN.test(path)) return [path];
  const lower = path.toLowerCase();
  const found = new Set<string>();
  for (const start of [lower, afterAuthority(lower)]) {
    if (start === undefined) continue;
    for (const way of new Set([start, decode(start), decodeButSlashes(start)])) {
      found.add(withoutTrailingSlash(way));
      found.add(resolve(way));
    }
  }
  return found;
}

/** `//host/path` read as a URL without its scheme. */
function afterAuthority(path: string): string | undefined {
  const rest = /^[/\\]{2,}[^/\\]*(.*)$/.exec(path)?.[1];
  return rest === '' ? '/' : rest;
}

/** Segments without dots, doubles, parameters (`;…`), back slashes and trailing slash. */
function resolve(path: string): string {
  const segments: string[] = [];
  for (const part of path.replaceAll('\\', '/').split('/')) {
    const parameters = part.indexOf(';');
    const segment = parameters === -1 ? part : part.slice(0, parameters);
    if (segment === '..') segments.pop();
    else if (segment !== '' && segment !== '.') segments.push(segment);
  }
  return `/${segments.join('/')}`;
}

/** A loop, because an expression would take quadratic time for a sender's thousands of slashes. */
function withoutTrailingSlash(path: string): string {
  let end = path.length;
  while (end > 1 && (path[end - 1] === '/' || path[end - 1] === '\\')) end -= 1;
  return path.slice(0, end);
}

/** Every escape once; a malformed one stays as it is. Bytes above ASCII are characters of their own. */
function decode(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)).toLowerCase(),
  );
}

function decodeButSlashes(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (all, hex: string) => (/2f|5c/i.test(hex) ? all : decode(all)));
}

/** A configured path as it comes over the wire: UTF-8, one character per byte. */
function bytes(path: string): string {
  return Buffer.from(path, 'utf8').toString('latin1');
}
