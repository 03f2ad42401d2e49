/** From the text of the configuration file to what the program runs with, or to all that is wrong with it. */
import type { Sender } from '../core/sender.ts';
import { complainAbout, describe, Findings } from './complaints.ts';
import type { Config } from './config.ts';
import { checkFallenRoutes } from './fallen-routes.ts';
import { allowed } from './fields.ts';
import { checkLedger, compileLedger } from './ledger.ts';
import { checkChange, compileNodes, type NodeList, type RedisNode } from './nodes.ts';
import { compileQueue } from './queue.ts';
import { compileRoutes } from './routes.ts';
import { checkAsyncRoutes, checkRouteBodies, checkRules } from './rules.ts';
import { configSchema, nodeSchema, type Settings } from './schema.ts';
import { routeSchema } from './schema-route.ts';
import { readToken, type Source } from './secrets.ts';
import { fallenItems, listOf, standingItems, standingSections } from './standing.ts';
import { readYaml } from './yaml.ts';

export type Loaded =
  | { readonly ok: true; readonly config: Config; readonly warnings: readonly string[] }
  | { readonly ok: false; readonly complaints: readonly string[] };

/** Buffered bodies in all, where no container limits the memory. */
const memoryWithoutLimit = 64 * 1024 ** 2;
const GiB = 1024 ** 3;
/**
 * Of the container's memory, for each request that is passed through. One that nobody takes from costs up to
 * 0.3 MiB, an idle one 15 KiB (measured); the rest is for deliveries and the program.
 */
const bytesOfStream = 1024 ** 2;

/**
 * Reports every fault at once: rules between sections are judged wherever the sections themselves are
 * right, and secrets are read wherever their reference is. Never throws for anything in the file.
 */
export function loadConfig(source: Source, senders: ReadonlyMap<string, Sender>): Loaded {
  const read = readYaml(source.text);
  if (!read.ok) return read;
  const raw = read.value;
  const findings = new Findings();
  if (!isMapping(raw)) {
    findings.complain([], `found ${describe(raw, [])}; needs a mapping with at least routes`);
    return { ok: false, complaints: findings.complaints };
  }

  const whole = configSchema.safeParse(raw, { error: allowed });
  if (!whole.success) complainAbout(whole.error.issues, raw, configSchema, findings);
  const standing = standingSections(raw);
  const claims = standing.claims && {
    ...standing.claims,
    retentionGiven: isMapping(raw['claims']) && 'retention' in raw['claims'],
  };
  const memoryBytes =
    standing.limits?.memory ??
    Math.floor(source.memoryLimit === undefined ? memoryWithoutLimit : source.memoryLimit / 5);
  const maxProxied = standing.upstream?.maxProxied ?? Math.floor((source.memoryLimit ?? GiB) / bytesOfStream);

  const rawRedis = isMapping(raw['redis']) ? raw['redis'] : {};
  const voters = (list: NodeList): RedisNode[] => {
    const written = listOf(rawRedis[list]);
    const items = standingItems(written, nodeSchema);
    return compileNodes(list, items, written.length, source, findings, raw['ledger'] === undefined);
  };
  const [nodes, previous] = [voters('nodes'), voters('previous')];
  if (nodes.length === listOf(rawRedis['nodes']).length) checkChange(nodes, previous, findings);
  const routes = compileRoutes(standingItems(raw['routes'], routeSchema), claims, source, senders, findings);
  checkFallenRoutes(fallenItems(raw['routes'], routeSchema), source, senders, findings);
  const adminToken = standing.admin?.token && readToken(standing.admin.token, source, ['admin', 'token'], findings);
  const queue = standing.queue && compileQueue(standing.queue, source, findings);
  const ledger =
    standing.ledger && compileLedger(standing.ledger, listOf(rawRedis['nodes']).length > 0, source, findings);
  checkLedger(routes, raw['ledger'] !== undefined, ledger, standing, findings);
  checkAsyncRoutes(routes, raw['queue'] !== undefined, standing, source.memoryLimit, findings);
  checkRules(standing, memoryBytes, findings);
  checkRouteBodies(routes, standing.limits?.body, memoryBytes, findings);

  if (!whole.success || findings.complaints.length > 0) return { ok: false, complaints: findings.complaints };
  return {
    ok: true,
    config: assemble(whole.data, { memoryBytes, maxProxied, adminToken, queue, ledger }, { nodes, previous }, routes),
    warnings: findings.warnings,
  };
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function assemble(
  settings: Settings,
  found: {
    readonly memoryBytes: number;
    readonly maxProxied: number;
    readonly adminToken: string | undefined;
    readonly queue: Config['queue'];
    readonly ledger: Config['ledger'];
  },
  voters: Pick<Config['redis'], 'nodes' | 'previous'>,
  routes: Config['routes'],
): Config {
  const { upstream, limits, redis, claims, drain } = settings;
  const { otlp, sample } = settings.tracing;
  return {
    service: settings.service ?? 'hookonce',
    listen: settings.listen,
    admin: { ...settings.admin, token: found.adminToken },
    upstream: {
      url: upstream.url,
      host: upstream.host,
      timeoutMs: upstream.timeout,
      connectTimeoutMs: upstream.connectTimeout,
      headersTimeoutMs: upstream.headersTimeout,
      keepAliveMs: upstream.keepAlive,
      maxInFlight: upstream.maxInFlight,
      maxWaiting: upstream.maxWaiting,
      maxWaitMs: upstream.maxWait,
      maxProxied: found.maxProxied,
    },
    limits: {
      bodyBytes: limits.body,
      memoryBytes: found.memoryBytes,
      replyBytes: limits.reply,
      headersBytes: limits.headers,
      inFlight: limits.inFlight,
    },
    redis: { timeoutMs: redis.timeout, prefix: redis.prefix, ...voters },
    claims: {
      lockTtlMs: claims.lockTtl,
      budgetMs: claims.budget,
      maxHoldMs: claims.maxHold,
      unknownHoldMs: claims.unknownHold ?? claims.lockTtl,
      retentionMs: claims.retention,
      recoverAfterMs: claims.recoverAfter,
      onMemoryLoss: claims.onMemoryLoss,
      resyncRate: claims.resyncRate,
      firstStart: claims.firstStart,
    },
    routes,
    unmatched: settings.unmatched,
    trustedProxies: settings.trustedProxies,
    queue: found.queue,
    ledger: found.ledger,
    readiness: settings.readiness,
    drain: { delayMs: drain.delay, graceMs: drain.grace },
    tracing: { otlp: otlp && `${otlp.scheme}://${otlp.name}`, sample },
    metrics: settings.metrics,
    log: settings.log,
  };
}
