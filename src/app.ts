/** Puts the parts together: the only file that knows everyone. */
import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { DestinationStream } from 'pino';
import { Registry } from 'prom-client';
import manifest from '../package.json' with { type: 'json' };
import type { Config } from './config/config.ts';
import { takeOver } from './config/live.ts';
import type { Loaded } from './config/load.ts';
import { Background } from './core/background.ts';
import type { Received } from './core/delivery.ts';
import { handle, type Gate } from './core/handle.ts';
import type { DeadLetters } from './core/dead-letters.ts';
import { bothHalves } from './core/halves.ts';
import { InFlight } from './core/in-flight.ts';
import { Behind } from './core/ledger-behind.ts';
import { LedgerClaims } from './core/ledger-claims.ts';
import { LedgerOperator, RowOperator } from './core/ledger-operator.ts';
import { createMemory } from './core/memory.ts';
import { observe } from './core/observe.ts';
import type { Operator } from './core/operator.ts';
import { replay } from './core/redelivery.ts';
import { RecentDeliveries } from './core/recent-deliveries.ts';
import type { Clock, Events, Ledger, Tracing } from './core/ports.ts';
import type { Route } from './core/route.ts';
import { createEvents } from './events/events.ts';
import type { ConfigRead } from './events/labels.ts';
import { createLog } from './events/log.ts';
import { createRegistry } from './events/metrics.ts';
import { createAdmin } from './http/admin.ts';
import { createServer, type EdgeServer, type EdgeSettings } from './http/server.ts';
import { createSenderKeys } from './keys.ts';
import type { JobQueue } from './queue/queue.ts';
import { QuorumClaims } from './redis/claims.ts';
import { membershipOf, type Membership } from './redis/membership.ts';
import { VoterOperator } from './redis/operator.ts';
import { Recovery } from './redis/recovery.ts';
import type { Voter } from './redis/voter.ts';
import { createVoters, embeddedLink, redisLinks, type NamedLink } from './redis/voters.ts';
import { createUpstream } from './upstream.ts';
import { createWorker } from './worker.ts';

export interface AppDependencies {
  readonly clock: Clock;
  /** Where log lines go; standard output without it. */
  readonly logDestination?: DestinationStream;
}

/** Deliveries are not taken before the voters have been met, so that the first of them find a quorum; but no longer than this. */
const MEET_VOTERS_MS = 3000;

/** At the end, for what the collector of traces has not had yet. */
const FLUSH_TRACES_MS = 2000;

export interface App extends AsyncDisposable {
  readonly ports: { readonly listen: number; readonly admin: number };
  /** Stops as a pod's container should: not ready at once, still taking deliveries for the drain delay, then finishing what is in flight. */
  drain(): Promise<void>;
  /**
   * Takes over what was read anew from the file at `path`, without a pause: deliveries that have begun end under the
   * configuration they began with. What only a restart brings stays as it was, and a configuration with faults changes
   * nothing; the log and the metrics say so. Never throws.
   */
  reload(path: string, loaded: Loaded): void;
}

/** Rejects when a port cannot be opened. Needs neither the application nor a voter to be up. */
export async function startApp(config: Config, { clock, logDestination }: AppDependencies): Promise<App> {
  await using starting = new AsyncDisposableStack();
  const log = createLog(config.log.level, logDestination);
  const registry = createRegistry(config.metrics.openMetrics);
  const links = config.redis.nodes.length === 0 ? embeddedLink(clock) : redisLinks(config.redis, clock);
  let running = config;
  const events = createEvents({
    routes: config.routes,
    nodes: links.map((link) => link.name),
    log,
    registry,
    upstreamTimeoutMs: config.upstream.timeoutMs,
    version: manifest.version,
    wallMs: clock.wall(),
    queue: config.queue !== undefined,
    ledger: config.ledger && { decidesAlone: () => running.routes.some((route) => route.onUnavailable === 'ledger') },
  });

  const tracing = await startTracing(config, clock, events, starting);
  const started = startClaims(config, clock, events, links, starting);
  const { claims } = started;
  const ledger = await startLedger(config, clock, events, claims, starting);
  const rowsAlone = config.redis.nodes.length === 0 && config.ledger?.onDown === 'reject';
  const operator = operatorOn(started.operator, ledger?.rows, rowsAlone);
  const upstream = starting.use(createUpstream(upstreamOptions(config), clock, (count) => events.slotsWaiting(count)));
  const keys = starting.use(createSenderKeys(clock, events));
  const background = new Background();
  const times = config.claims;
  const inFlight = new InFlight(ledger?.claims ?? claims, times, clock, events);
  const queue = await startQueue(config, clock, events, starting);
  const gate: Gate = {
    ...{ service: config.service, claims, upstream, keys, clock, events, times, inFlight, background },
    queue,
    versions: claims,
  };

  // In async mode it is the work on an event that the ledger guards, unless nothing else can decide.
  const gateOf = (route: Route): Gate =>
    ledger === undefined || (route.async && route.onUnavailable !== 'ledger')
      ? gate
      : { ...gate, claims: ledger.of(route), versions: ledger.of(route) };
  const recent = new RecentDeliveries(clock);

  let read = config;
  let drainingSinceMs: number | undefined;
  // oxlint-disable-next-line prefer-const -- the closures below look at it before it is there
  let server: EdgeServer | undefined;
  const beginDraining = (): void => {
    drainingSinceMs ??= clock.now();
    server?.drain();
    // Others take what is left; what is put in goes on being taken.
    void queue?.stop();
  };
  const admin = starting.use(
    await createAdmin({
      ...config.admin,
      ready: () => {
        const { voters } = claims;
        if (drainingSinceMs !== undefined) return { ready: false, reason: 'draining', voters };
        if (server === undefined) return { ready: false, reason: 'starting', voters };
        if (running.readiness.requireQuorum && !claims.available())
          return { ready: false, reason: 'no quorum', voters };
        return { ready: true, voters };
      },
      drain: beginDraining,
      metrics: registry,
      page: queue && config.queue?.page === true ? await pageOf(queue, operator, () => running.admin.token) : undefined,
      operate: {
        service: config.service,
        routes: () => running.routes,
        token: () => running.admin.token,
        operator: queue ? bothHalves(operator) : operator,
        letters: queue?.deadLetters,
        recent: (key) => recent.of(key),
        events,
      },
    }),
  );
  for (let waitedMs = 0; !claims.available() && waitedMs < MEET_VOTERS_MS; waitedMs += 25) await clock.sleep(25);
  const memory = createMemory(config.limits.memoryBytes, (held) => events.buffered(held));
  const edge = await createServer({
    ...config.listen,
    ...edgeSettings(config),
    application: config.upstream,
    memory,
    clock,
    events: {
      ...events,
      deliveryEnded: (report) => {
        recent.note(report);
        events.deliveryEnded(report);
      },
    },
    tracing,
    handle: async (route, received, trail) =>
      await (route.observe ? observe : handle)(follow(received, gateOf(route)), route, received, trail),
  });
  server = starting.use(edge);
  if (config.queue)
    queue?.work(
      createWorker(
        gate,
        () => running.routes,
        config.queue,
        memory,
        (route) => ledger?.of(route) ?? claims,
        tracing,
      ),
    );
  if (drainingSinceMs !== undefined) edge.drain();
  log.info({ ...config.listen, port: edge.port, adminPort: admin.port, routes: config.routes.length }, 'listening');
  // A voter that was never there has not changed its state: nothing else would say why deliveries are turned away.
  if (!claims.available())
    log.warn({ voters: claims.voters }, 'too few voters count: there is no quorum until they do');

  const stack = starting.move();
  return {
    ports: { listen: edge.port, admin: admin.port },
    async drain() {
      beginDraining();
      const { delayMs, graceMs } = running.drain;
      const passedMs = clock.now() - drainingSinceMs!;
      await clock.sleep(Math.max(0, delayMs - passedMs));
      const finished = new AbortController();
      const finishing = Promise.all([edge.close(), queue?.stop(), background.idle()])
        .then(async () => await claims.settled())
        .then(async () => await ledger?.behind.idle())
        .then(() => finished.abort());
      await Promise.race([finishing, clock.sleep(Math.max(0, graceMs - delayMs), finished.signal)]);
      if (finished.signal.aborted) log.info('shutdown complete');
      else events.warn('the grace period is over before everything in flight has ended');
    },
    reload(path, loaded) {
      const tell = (became: ConfigRead): void => events.configRead(path, became, clock.wall());
      if (!loaded.ok) return tell({ kind: 'refused', complaints: loaded.complaints });
      if (isDeepStrictEqual(loaded.config, read)) return tell({ kind: 'unchanged' });
      const { config: next, waiting } = takeOver(running, loaded.config);
      try {
        edge.reload(edgeSettings(next));
      } catch (error) {
        events.warn('the configuration could not be taken over', { error });
        return tell({ kind: 'refused', complaints: ['it could not be taken over'] });
      }
      upstream.resize(upstreamOptions(next));
      memory.resize(next.limits.memoryBytes);
      log.level = next.log.level;
      [running, read] = [next, loaded.config];
      tell({ kind: 'applied', routes: next.routes, waiting, warnings: loaded.warnings });
    },
    async [Symbol.asyncDispose]() {
      await queue?.[Symbol.asyncDispose]();
      // The application's exchanges end first: what waits for them is then settled, as far as it can be.
      await upstream[Symbol.asyncDispose]();
      await stack.disposeAsync();
    },
  };
}

/** The SDK is not even loaded where no collector is configured. */
async function startTracing(
  { tracing: { otlp, sample }, service, upstream }: Config,
  clock: Clock,
  events: Events,
  stack: AsyncDisposableStack,
): Promise<Tracing | undefined> {
  if (otlp === undefined) return undefined;
  const module = await import('./tracing/otlp.ts');
  const options = { otlp, sample, flushMs: FLUSH_TRACES_MS, service, version: manifest.version };
  return stack.use(module.startTracing({ ...options, applicationUrl: upstream.url }, clock, events));
}

/** Its drivers are loaded only where a queue is configured. */
async function startQueue(
  config: Config,
  clock: Clock,
  events: Events,
  stack: AsyncDisposableStack,
): Promise<JobQueue | undefined> {
  if (!config.queue) return undefined;
  const { JobQueue } = await import('./queue/queue.ts');
  return stack.use(new JobQueue(queueOptions(config, config.queue), clock, events));
}

/** Not loaded unless it is asked for: it brings a server of its own, and its files. */
async function pageOf(queue: JobQueue, operator: Operator, token: () => string | undefined) {
  const { createPage } = await import('./queue/page.ts');
  const { deadLetters: letters } = queue;
  return createPage({
    queue: () => queue.bull,
    token,
    replay: async (id) => await replay(letters, operator, id, false),
    discard: async (id) => await letters.discard(id),
  });
}

/** A job is taken over sooner than its event's lock runs out: whoever comes too early is told how long to wait. */
const LONGEST_JOB_LOCK_MS = 5000;

const queueOptions = ({ service, claims }: Config, queue: NonNullable<Config['queue']>) => ({
  ...queue,
  service,
  lockMs: Math.min(claims.lockTtlMs, LONGEST_JOB_LOCK_MS),
});

const upstreamOptions = ({ upstream, limits }: Config) => ({ ...upstream, maxReply: limits.replyBytes });

/** What the public port takes from the configuration, and can take anew. */
function edgeSettings({ routes, unmatched, trustedProxies, limits, upstream }: Config): EdgeSettings {
  const { bodyBytes, headersBytes, inFlight } = limits;
  return {
    routes,
    unmatched,
    trustedProxies,
    limits: { body: bodyBytes, headers: headersBytes, inFlight },
    maxProxied: upstream.maxProxied,
  };
}

interface StartedLedger {
  readonly rows: Ledger;
  readonly claims: LedgerClaims;
  readonly behind: Behind;
  /** The claims for a route: whether the ledger may decide alone is the route's to say. */
  of(route: Route): LedgerClaims;
}

/** Its driver is not even loaded where there is no ledger. Deliveries are not taken before it has been met, but no longer than for the voters. */
async function startLedger(
  config: Config,
  clock: Clock,
  events: Events,
  votes: QuorumClaims,
  stack: AsyncDisposableStack,
): Promise<StartedLedger | undefined> {
  if (config.ledger === undefined) return undefined;
  const { PostgresLedger } = await import('./ledger/postgres.ts');
  const rows = stack.use(new PostgresLedger({ ...config.ledger, sweeps: true }, clock, events));
  const behind = stack.use(new Behind(rows, clock, events));
  const sharedVoters = config.redis.nodes.length > 0;
  const options = { ...config.claims, onDown: config.ledger.onDown, sharedVoters };
  const claims = new LedgerClaims({ votes, ledger: rows, behind, options, clock, events });
  const alone = claims.alone();
  for (let waitedMs = 0; !rows.up && waitedMs < MEET_VOTERS_MS; waitedMs += 25) await clock.sleep(25);
  return { rows, claims, behind, of: (route) => (route.onUnavailable === 'ledger' ? alone : claims) };
}

const follow = (received: Received, gate: Gate): Gate => received.trace?.follow(gate) ?? gate;

/** Voters, the claims on them, and what brings voters back that forgot; all of them end with `stack`. */
function startClaims(
  config: Config,
  clock: Clock,
  events: Events,
  links: readonly NamedLink[],
  stack: AsyncDisposableStack,
): StartedClaims {
  const embedded = config.redis.nodes.length === 0;
  // The votes leave the ledger its part of the budget.
  const budgetMs = config.claims.budgetMs - (config.ledger?.timeoutMs ?? 0);
  // The embedded voter is as old as the process: there is nothing that it could have forgotten.
  const firstStart = embedded ? 'trust' : config.claims.firstStart;
  const membership = embedded ? undefined : membershipIn(config);
  const voters = startVoters(config, clock, events, links, firstStart, membership);
  const times = { ...config.claims, budgetMs, voterTimeoutMs: config.redis.timeoutMs };
  const claims = stack.use(new QuorumClaims(voters, times, clock, events, membership?.lists));
  const recovery = { ...config.claims, lifeMs: lifeOf(config), token: nonce() };
  if (!embedded) stack.use(new Recovery(voters, recovery, clock, events, membership));
  return { claims, operator: new VoterOperator(voters, config.claims, membership?.lists) };
}

interface StartedClaims {
  readonly claims: QuorumClaims;
  readonly operator: Operator;
}

/**
 * For the command line: explain and forget over connections of its own. The voters are met as a gateway meets them;
 * bringing back one that forgot is left to the gateways. The embedded voter can be reached by its process only: where
 * there is a ledger, its rows are asked instead.
 */
export async function openOperator(config: Config, clock: Clock): Promise<Operator & AsyncDisposable> {
  const events = silentEvents(clock);
  const voters = startVoters(config, clock, events, redisLinks(config.redis, clock), 'wait');
  const missing = (): boolean => voters.some((voter) => !voter.eligible);
  for (let waitedMs = 0; missing() && waitedMs < MEET_VOTERS_MS; waitedMs += 25) await clock.sleep(25);
  const rows = config.ledger && (await openLedger(config.ledger, clock, events));
  const known = new VoterOperator(voters, config.claims, membershipIn(config).lists);
  const one = operatorOn(known, rows, voters.length === 0);
  const operator = config.queue ? bothHalves(one) : one;
  return {
    explain: async (key) => await operator.explain(key),
    forget: async (key, retentionMs, force) => await operator.forget(key, retentionMs, force),
    [Symbol.asyncDispose]: async () =>
      void (await Promise.all([...voters, ...(rows ? [rows] : [])].map((part) => part[Symbol.asyncDispose]()))),
  };
}

/** Voters that nobody else asks cannot tell what other gateways know; their rows can. */
function operatorOn(voters: Operator, rows: Ledger | undefined, rowsAlone: boolean): Operator {
  if (!rows) return voters;
  return rowsAlone ? new RowOperator(rows) : new LedgerOperator(voters, rows);
}

/** With time for a person rather than for a delivery. */
async function openLedger(
  options: NonNullable<Config['ledger']>,
  clock: Clock,
  events: Events,
): Promise<Ledger & AsyncDisposable> {
  const { PostgresLedger } = await import('./ledger/postgres.ts');
  const patient = { timeoutMs: MEET_VOTERS_MS, connections: 1, sweeps: false };
  const ledger = new PostgresLedger({ ...options, ...patient }, clock, events);
  for (let waitedMs = 0; !ledger.up && waitedMs < MEET_VOTERS_MS; waitedMs += 25) await clock.sleep(25);
  return ledger;
}

/** For the command line: dead letters over connections of its own, and the voters that know what has been done since. */
export async function openDeadLetters(config: Config, clock: Clock): Promise<Office> {
  if (!config.queue) throw new Error('there is no queue');
  await using starting = new AsyncDisposableStack();
  const { JobQueue } = await import('./queue/queue.ts');
  const events = silentEvents(clock);
  const queue = starting.use(new JobQueue(queueOptions(config, config.queue), clock, events));
  for (let waitedMs = 0; !queue.bull && waitedMs < MEET_VOTERS_MS; waitedMs += 25) await clock.sleep(25);
  // The embedded voter can be asked by its own process only: the worker has the last word.
  const asks = config.redis.nodes.length > 0 || config.ledger;
  const operator = asks ? starting.use(await openOperator(config, clock)) : undefined;
  const stack = starting.move();
  return { letters: queue.deadLetters, operator, [Symbol.asyncDispose]: async () => await stack.disposeAsync() };
}

interface Office extends AsyncDisposable {
  readonly letters: DeadLetters;
  readonly operator: Operator | undefined;
}

/** For the command line, which says for itself what it has found. */
function silentEvents(clock: Clock): Events {
  const nothing = { routes: [], nodes: [], upstreamTimeoutMs: 0 };
  const { version } = manifest;
  return createEvents({
    ...nothing,
    version,
    registry: new Registry(),
    wallMs: clock.wall(),
    log: createLog('silent'),
  });
}

function startVoters(
  config: Config,
  clock: Clock,
  events: Events,
  links: readonly NamedLink[],
  firstStart: 'wait' | 'trust',
  membership?: Membership,
): Voter[] {
  const options = { timeoutMs: config.redis.timeoutMs, lifeMs: lifeOf(config), firstStart, nonce };
  return createVoters(links, membership ? { ...options, membership } : options, clock, events);
}

function membershipIn({ service, redis }: Config): Membership {
  const names = (nodes: Config['redis']['nodes']): string[] => nodes.map(({ name }) => name);
  return membershipOf(service, names(redis.nodes), names(redis.previous));
}

/** The longest life a lock can be given. */
const lifeOf = ({ claims }: Config): number => Math.max(claims.lockTtlMs, claims.unknownHoldMs);
const nonce = (): string => randomBytes(9).toString('base64url');
