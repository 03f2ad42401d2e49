/** What must hold between settings. Each complaint names both of them, and their values. */
import type { Route } from '../core/route.ts';
import type { Findings } from './complaints.ts';
import type { Standing } from './standing.ts';
import { formatDuration, formatSize } from './units.ts';

/**
 * A claim must fit into its budget, with one confirmation; the budget must leave most of the lock's life
 * for the application; and a lock should outlive an ordinary exchange even when its renewal fails.
 */
export function checkRules(settings: Standing, memoryBytes: number, findings: Findings): void {
  const { claims, upstream, redis, drain, limits, listen, admin } = settings;
  const d = formatDuration;
  const path = (name: string) => name.split('.');

  if (redis && redis.nodes.length > 0) {
    if ('service' in settings && settings.service === undefined) {
      findings.complain(
        ['service'],
        'found nothing, but redis.nodes is set; needs the name under which gateways share events',
      );
    }
    // The votes and their confirmation, each at its deadline.
    const least = 2 * redis.timeout + 50;
    if (claims && claims.budget <= least) {
      findings.complain(
        path('claims.budget'),
        `found ${d(claims.budget)} with redis.timeout ${d(redis.timeout)}; needs more than 2 × redis.timeout + 50ms, which is ${d(least)}`,
      );
    }
  }
  if (claims && claims.budget * 3 >= claims.lockTtl) {
    findings.complain(
      path('claims.budget'),
      `found ${d(claims.budget)} with claims.lockTtl ${d(claims.lockTtl)}; needs less than a third of claims.lockTtl, which is ${d(Math.floor(claims.lockTtl / 3))}`,
    );
  }
  if (claims && upstream) {
    const least = upstream.timeout + claims.budget + 1000;
    if (!claims.relyOnWatchdog && least > claims.lockTtl) {
      findings.complain(
        path('claims.lockTtl'),
        `found ${d(claims.lockTtl)} with upstream.timeout ${d(upstream.timeout)} and claims.budget ${d(claims.budget)}; needs at least their sum + 1s, which is ${d(least)}, or claims.relyOnWatchdog: true`,
      );
    }
    if (upstream.timeout >= claims.maxHold) {
      findings.complain(
        path('claims.maxHold'),
        `found ${d(claims.maxHold)} with upstream.timeout ${d(upstream.timeout)}; needs more than upstream.timeout`,
      );
    }
  }
  if (upstream?.headersTimeout !== undefined && upstream.headersTimeout > upstream.timeout) {
    findings.complain(
      path('upstream.headersTimeout'),
      `found ${d(upstream.headersTimeout)} with upstream.timeout ${d(upstream.timeout)}; needs at most upstream.timeout`,
    );
  }
  if (limits && limits.body > memoryBytes) {
    const given =
      limits.memory === undefined ? `${formatSize(memoryBytes)} (its default here)` : formatSize(memoryBytes);
    findings.complain(
      path('limits.memory'),
      `found ${given} with limits.body ${formatSize(limits.body)}; needs at least one body`,
    );
  }
  if (drain && drain.delay >= drain.grace) {
    findings.complain(
      path('drain.grace'),
      `found ${d(drain.grace)} with drain.delay ${d(drain.delay)}; needs more than drain.delay`,
    );
  } else if (drain && upstream && drain.delay + upstream.timeout > drain.grace) {
    findings.warn(
      path('drain.grace'),
      `${d(drain.grace)} is shorter than drain.delay (${d(drain.delay)}) and upstream.timeout (${d(upstream.timeout)}) together: a slow delivery may be cut when the gateway stops`,
    );
  }
  if (upstream && listen && isOwn(upstream.url, listen))
    findings.complain(
      path('upstream.url'),
      `found ${upstream.url}, which is where the gateway itself listens (listen.port); needs the application`,
    );
  if (settings.tracing && settings.tracing.otlp === undefined && settings.tracing.sample !== 1)
    findings.warn(path('tracing.sample'), 'without tracing.otlp there are no traces');
  if (listen && admin && listen.port === admin.port && listen.port !== 0 && overlap(listen.host, admin.host)) {
    findings.complain(path('admin.port'), `found ${admin.port}, which listen.port has already; needs another`);
  }
}

/** Of a job's body, while it is read and handed on. */
const COPIES = 4;

/** What is accepted has to lie somewhere. */
export function checkAsyncRoutes(
  routes: readonly Pick<Route, 'name' | 'async'>[],
  hasQueue: boolean,
  { queue, upstream, limits, ...standing }: Standing,
  memoryLimit: number | undefined,
  findings: Findings,
): void {
  for (const { name, async } of routes) {
    if (!async) continue;
    if (!hasQueue)
      findings.complain(['queue'], `found nothing, but route ${name} has mode: async; needs the url of the queue`);
  }
  if (queue && 'service' in standing && standing.service === undefined)
    findings.warn(
      ['service'],
      "none, and there is a queue: gateways of every service without a name take each other's jobs from it",
    );
  const memory = queue && limits ? COPIES * queue.concurrency * limits.body : 0;
  if (queue && limits && memoryLimit !== undefined && memory > memoryLimit / 2)
    findings.warn(
      ['queue', 'concurrency'],
      `${queue.concurrency} jobs with bodies of ${formatSize(limits.body)} (limits.body) would take ${formatSize(memory)} of the container's ${formatSize(memoryLimit)}; lower one of them`,
    );
  if (queue && upstream && queue.concurrency > upstream.maxInFlight)
    findings.warn(
      ['queue', 'concurrency'],
      `${queue.concurrency} is more than upstream.maxInFlight (${upstream.maxInFlight}): jobs will wait for a place`,
    );
}

/** A route whose largest body never fits would refuse it for ever, as if for lack of room. */
export function checkRouteBodies(
  routes: readonly Pick<Route, 'name' | 'limits' | 'elements'>[],
  general: number | undefined,
  memoryBytes: number,
  findings: Findings,
): void {
  for (const { name, limits, elements } of routes) {
    const body = limits?.bodyBytes;
    if (body !== undefined && body > memoryBytes)
      findings.complain(
        ['limits', 'memory'],
        `found ${formatSize(memoryBytes)} with limits.body ${formatSize(body)} of route ${name}; needs at least one body`,
      );
    const apart = body ?? general;
    if (elements !== undefined && apart !== undefined && apart <= memoryBytes && 2 * apart > memoryBytes)
      findings.complain(
        ['limits', 'memory'],
        `found ${formatSize(memoryBytes)} with limits.body ${formatSize(apart)} and elements of route ${name}; needs at least two bodies, as it came and as it is forwarded`,
      );
  }
}

/** Whatever is on no route would go round in circles. */
function isOwn(url: string, listen: { readonly host: string; readonly port: number }): boolean {
  const { hostname, port } = URL.parse(url) ?? { hostname: '', port: '' };
  const local = ({ localhost: '127.0.0.1', '[::1]': '::1' } as Record<string, string>)[hostname] ?? hostname;
  return Number(port) === listen.port && ['127.0.0.1', '::1'].includes(local) && overlap(listen.host, local);
}

const everywhere = ['0.0.0.0', '::'];
const overlap = (a: string, b: string) => a === b || everywhere.includes(a) || everywhere.includes(b);
