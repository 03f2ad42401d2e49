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
import { handle, type Gate } from './core/handle.ts';
import { InFlight } from './core/in-flight.ts';
import { createMemory } from './core/memory.ts';
import { observe } from './core/observe.ts';
import type { Operator } from './core/operator.ts';
import type { Clock, Events } from './core/ports.ts';
import { createEvents, createLog, type ConfigRead } from './events.ts';
import { createAdmin } from './http/admin.ts';
import { createServer, type EdgeServer, type EdgeSettings } from './http/server.ts';
import { createSenderKeys } from './keys.ts';
import { QuorumClaims } from './redis/claims.ts';
import { VoterOperator } from './redis/operator.ts';
import { Recovery } from './redis/recovery.ts';
import type { Voter } from './redis/voter.ts';
import { createVoters, embeddedLink, redisLinks, type NamedLink } from './redis/voters.ts';
import { createUpstream } from './upstream.ts';

export interface AppDependencies {
  readonly clock: Clock;
  /** Where log lines go; standard output without it. */
  readonly logDestination?: DestinationStream;
}

/** Deliveries are not taken before the voters have been met, so that the first of them find a quorum; but no longer than this. */
const MEET_VOTERS_MS = 3000;

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
  const registry = new Registry();
  const links = config.redis.nodes.length === 0 ? embeddedLink(clock) : redisLinks(config.redis);
  const events = createEvents({
    routes: config.routes,
    nodes: links.map((link) => link.name),
    log,
    registry,
    upstreamTimeoutMs: config.upstream.timeoutMs,
    version: manifest.version,
    wallMs: clock.wall(),
  });

  const { claims, operator } = startClaims(config, clock, events, links, starting);
  const upstream = starting.use(createUpstream(upstreamOptions(config), clock, (count) => events.slotsWaiting(count)));
  const keys = starting.use(createSenderKeys(clock, events));
  const background = new Background();
  const times = config.claims;
  const inFlight = new InFlight(claims, times, clock, events);
  const gate: Gate = { service: config.service, claims, upstream, keys, clock, events, times, inFlight, background };

  let running = config;
  let read = config;
  let drainingSinceMs: number | undefined;
  // oxlint-disable-next-line prefer-const -- the closures below look at it before it is there
  let server: EdgeServer | undefined;
  const beginDraining = (): void => {
    drainingSinceMs ??= clock.now();
    server?.drain();
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
      operate: {
        service: config.service,
        routes: () => running.routes,
        token: () => running.admin.token,
        operator,
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
    events,
    handle: async (route, received, trail) => await (route.observe ? observe : handle)(gate, route, received, trail),
  });
  server = starting.use(edge);
  if (drainingSinceMs !== undefined) edge.drain();
  log.info({ ...config.listen, port: edge.port, adminPort: admin.port, routes: config.routes.length }, 'listening');

  const stack = starting.move();
  return {
    ports: { listen: edge.port, admin: admin.port },
    async drain() {
      beginDraining();
      const { delayMs, graceMs } = running.drain;
      const passedMs = clock.now() - drainingSinceMs!;
      await clock.sleep(Math.max(0, delayMs - passedMs));
      const finished = new AbortController();
      const finishing = Promise.all([edge.close(), background.idle()])
        .then(async () => await claims.settled())
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
      // The application's exchanges end first: what waits for them is then settled, as far as it can be.
      await upstream[Symbol.asyncDispose]();
      await stack.disposeAsync();
    },
  };
}

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

/** Voters, the claims on them, and what brings voters back that forgot; all of them end with `stack`. */
function startClaims(
  config: Config,
  clock: Clock,
  events: Events,
  links: readonly NamedLink[],
  stack: AsyncDisposableStack,
): StartedClaims {
  const embedded = config.redis.nodes.length === 0;
  // The embedded voter is as old as the process: there is nothing that it could have forgotten.
  const voters = startVoters(config, clock, events, links, embedded ? 'trust' : config.claims.firstStart);
  const claims = stack.use(
    new QuorumClaims(voters, { ...config.claims, voterTimeoutMs: config.redis.timeoutMs }, clock, events),
  );
  if (!embedded)
    stack.use(new Recovery(voters, { ...config.claims, lifeMs: lifeOf(config), token: nonce() }, clock, events));
  return { claims, operator: new VoterOperator(voters, config.claims) };
}

interface StartedClaims {
  readonly claims: QuorumClaims;
  readonly operator: Operator;
}

/**
 * For the command line: explain and forget over connections of its own. The voters are met as a gateway meets them;
 * bringing back one that forgot is left to the gateways. Not for the embedded voter, which only its process can reach.
 */
export async function openOperator(config: Config, clock: Clock): Promise<Operator & AsyncDisposable> {
  const options = {
    routes: [],
    nodes: [],
    registry: new Registry(),
    upstreamTimeoutMs: 0,
    version: manifest.version,
    wallMs: clock.wall(),
  };
  const events = createEvents({ ...options, log: createLog('silent') });
  const voters = startVoters(config, clock, events, redisLinks(config.redis), 'wait');
  const missing = (): boolean => voters.some((voter) => !voter.eligible);
  for (let waitedMs = 0; missing() && waitedMs < MEET_VOTERS_MS; waitedMs += 25) await clock.sleep(25);
  const operator = new VoterOperator(voters, config.claims);
  return {
    explain: async (key) => await operator.explain(key),
    forget: async (key, retentionMs, force) => await operator.forget(key, retentionMs, force),
    [Symbol.asyncDispose]: async () => void (await Promise.all(voters.map((voter) => voter[Symbol.asyncDispose]()))),
  };
}

function startVoters(
  config: Config,
  clock: Clock,
  events: Events,
  links: readonly NamedLink[],
  firstStart: 'wait' | 'trust',
): Voter[] {
  return createVoters(
    links,
    { timeoutMs: config.redis.timeoutMs, lifeMs: lifeOf(config), firstStart, nonce },
    clock,
    events,
  );
}

/** The longest life a lock can be given. */
const lifeOf = ({ claims }: Config): number => Math.max(claims.lockTtlMs, claims.unknownHoldMs);
const nonce = (): string => randomBytes(9).toString('base64url');
