/**
 * The URL that a sender has posted to, for signatures that cover it. Configuration says it, because between
 * sender and gateway scheme, host, port and path may all have been rewritten, and what headers say about it
 * is anybody's word.
 *
 * | configured                | the sender posted to                                                          |
 * | `https://host:port`       | that, and the request's target as it came                                     |
 * | `https://host/path`       | that for the route's path, and what the request's target has beyond it        |
 * | `https://host/path?query` | likewise; the request's query must be that one, go on after it, or be missing |
 *
 * The target must spell the route's path as it is configured. A query is never replaced by the configured
 * one: the application would act on something that nobody signed.
 */
import type { Route } from './route.ts';

export interface PublicUrl {
  /** Scheme, authority and path, byte for byte as configured. */
  readonly base: string;
  /** Whether `base` ends with its authority. */
  readonly isOrigin: boolean;
  /** Without its question mark. */
  readonly query: string | undefined;
}

/** `https://host/path?query` in its parts; undefined when it is no absolute http or https URL, or has a fragment. */
export function parsePublicUrl(text: string): PublicUrl | undefined {
  const [, origin, path, query] = /^(https?:\/\/[^/?#\s]+)(\/[^?#\s]*)?(?:\?([^#\s]*))?$/.exec(text) ?? [];
  if (origin === undefined || !URL.canParse(text)) return undefined;
  const isOrigin = path === undefined || (path === '/' && query === undefined);
  return {
    base: latin1(isOrigin ? origin : origin + path),
    isOrigin,
    query: query === undefined ? undefined : latin1(query),
  };
}

/** Undefined where the request is at none of the route's public URLs, or the route has none. */
export function publicUrlOf(
  { path, publicUrl }: Pick<Route, 'path' | 'publicUrl'>,
  target: string,
): string | undefined {
  if (publicUrl === undefined) return undefined;
  if (publicUrl.isOrigin) return publicUrl.base + target;
  const prefix = path.endsWith('/*');
  const known = latin1(prefix ? path.slice(0, -'/*'.length) : path);
  const rest = target.slice(known.length);
  if (!target.startsWith(known) || !(prefix ? /^([/?]|$)/ : /^(\?|$)/).test(rest)) return undefined;
  const { base, query } = publicUrl;
  const mark = rest.indexOf('?');
  if (query === undefined) return base + rest;
  if (mark === -1) return `${base}${rest}?${query}`;
  const asked = rest.slice(mark + 1);
  return asked === query || asked.startsWith(`${query}&`) ? base + rest : undefined;
}

/** As text comes over the wire: UTF-8, one character per byte. */
const latin1 = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');
