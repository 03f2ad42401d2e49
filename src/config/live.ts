/** What of a new configuration a running gateway takes over. */
import { isDeepStrictEqual } from 'node:util';
import type { Route } from '../core/route.ts';
import type { Config } from './config.ts';

/** The settings that do not wait for a restart, as the file names them. Everything else does. */
export const LIVE: readonly string[] = [
  ...['routes', 'unmatched', 'trustedProxies', 'limits', 'readiness', 'drain', 'log', 'admin.token'],
  ...['upstream.maxInFlight', 'upstream.maxWaiting', 'upstream.maxWait', 'upstream.maxProxied'],
];

/** `config`: what runs from now on. `waiting`: the settings that `next` has otherwise and that only a restart brings. */
export function takeOver(
  running: Config,
  next: Config,
): { readonly config: Config; readonly waiting: readonly string[] } {
  const { routes, unmatched, trustedProxies, limits, readiness, drain, log } = next;
  const { maxInFlight, maxWaiting, maxWaitMs, maxProxied } = next.upstream;
  const config: Config = {
    ...{
      ...running,
      routes: running.queue ? routes : routes.map(inSync),
      unmatched,
      trustedProxies,
      limits,
      readiness,
      drain,
      log,
    },
    admin: { ...running.admin, token: next.admin.token },
    upstream: { ...running.upstream, maxInFlight, maxWaiting, maxWaitMs, maxProxied },
  };
  return { config, waiting: [...new Set(differences(config, next).map(asWritten))] };
}

/** Without a queue, which only a restart brings, a route stays in sync mode. */
function inSync({ async: _, ...route }: Route): Route {
  return route;
}

/** The paths at which two configurations differ, sections opened and lists not. */
function differences(one: object, other: object, path = ''): string[] {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...names].flatMap((name) => {
    const [a, b] = [one, other].map((each) => (each as Record<string, unknown>)[name]);
    if (isDeepStrictEqual(a, b)) return [];
    return isSection(a) && isSection(b) ? differences(a, b, `${path}${name}.`) : [`${path}${name}`];
  });
}

function isSection(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Inside the program durations and sizes carry their unit in their name. */
const asWritten = (path: string): string => path.replace(/(Ms|Bytes)$/, '').replace(/^queue\.target.*/, 'queue.url');
