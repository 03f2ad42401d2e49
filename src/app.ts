/** Puts the parts together: the only file that knows everyone. */
import { randomBytes } from 'node:crypto';
import type { DestinationStream } from 'pino';
import { Registry } from 'prom-client';
import manifest from '../package.json' with { type: 'json' };
import type { Config } from './config/config.ts';
import { Background } from './core/background.ts';
import { handle, type Gate } from './core/handle.ts';
import { InFlight } from './core/in-flight.ts';
import type { Clock, Events } from './core/ports.ts';
import { createEvents, createLog } from './events.ts';
import { createAdmin } from './http/admin.ts';
import { createServer, type EdgeServer } from './http/server.ts';
import { QuorumClaims } from './redis/claims.ts';
import { createVoters, embeddedLink, redisLinks } from './redis/voters.ts';
import { createUpstream } from './upstream.ts';

export interface AppDependencies {
  readonly clock: Clock;
  /** Where log lines go; standard output without it. */
  readonly logDestination?: DestinationStream;
}

export interface App extends AsyncDisposable {
  readonly ports: { readonly listen: number; readonly admin: number };
  /** Stops as a pod's container should: not ready at once, still taking deliveries for the drain delay, then finishing what is in flight. */
  drain(): Promise<void>;
}

/** Rejects when a port cannot be opened. Needs neither the application nor a voter to be up. */
export async function startApp(config: Config, { clock, logDestination }: AppDependencies): Promise<App> {
  await using starting = new AsyncDisposableStack();
  const log = createLog(config.log.level, logDestination);
  const registry = new Registry();
  const links = config.redis.nodes.length === 0 ? embeddedLink(clock) : redisLinks(config.redis);
  const events = createEvents({
    routes: config.routes.map((route) => route.name),
    nodes: links.map((link) => link.name),
    log,
    registry,
    upstreamTimeoutMs: config.upstream.timeoutMs,
    version: manifest.version,
  });

  const claims = starting.use(createClaims(config, links, clock, events));
  const upstream = starting.use(createUpstream({ ...config.upstream, maxReply: config.limits.replyBytes }, clock));
  const background = new Background();
  const times = config.claims;
  const inFlight = new InFlight(claims, times, clock, events);
  const gate: Gate = { service: config.service, claims, upstream, clock, events, times, inFlight, background };

  let drainingSinceMs: number | undefined;
  let server: EdgeServer | undefined;
  const beginDraining = (): void => {
    drainingSinceMs ??= clock.now();
    server?.drain();
  };
  const admin = starting.use(
    await createAdmin({
      ...config.admin,
      ready: () =>
        drainingSinceMs !== undefined ? { ready: false, reason: 'draining' } : server ? { ready: true } : { ready: false, reason: 'starting' },
      drain: beginDraining,
      metrics: registry,
    }),
  );
  const edge = await createServer({
    ...config.listen,
    routes: config.routes,
    limits: { body: config.limits.bodyBytes, memory: config.limits.memoryBytes },
    clock,
    events,
    handle: async (route, received, trail) => await handle(gate, route, received, trail),
  });
  server = starting.use(edge);
  if (drainingSinceMs !== undefined) edge.drain();
  log.info({ ...config.listen, port: edge.port, adminPort: admin.port, routes: config.routes.length }, 'listening');

  const stack = starting.move();
  return {
    ports: { listen: edge.port, admin: admin.port },
    async drain() {
      beginDraining();
      const { delayMs, graceMs } = config.drain;
      const passedMs = clock.now() - drainingSinceMs!;
      await clock.sleep(Math.max(0, delayMs - passedMs));
      const finished = new AbortController();
      const finishing = Promise.all([edge.close(), background.idle()])
        .then(async () => await claims.settled())
        .then(() => finished.abort());
      await Promise.race([finishing, clock.sleep(Math.max(0, graceMs - delayMs), finished.signal)]);
      if (!finished.signal.aborted) events.warn('the grace period is over before everything in flight has ended');
    },
    async [Symbol.asyncDispose]() {
      // The application's exchanges end first: what waits for them is then settled, as far as it can be.
      await upstream[Symbol.asyncDispose]();
      await stack.disposeAsync();
    },
  };
}

function createClaims(config: Config, links: Parameters<typeof createVoters>[0], clock: Clock, events: Events): QuorumClaims {
  const { lockTtlMs, unknownHoldMs, firstStart } = config.claims;
  const { timeoutMs } = config.redis;
  const embedded = config.redis.nodes.length === 0;
  const voters = createVoters(
    links,
    {
      timeoutMs,
      lifeMs: Math.max(lockTtlMs, unknownHoldMs),
      // The embedded voter is as old as the process: there is nothing that it could have forgotten.
      firstStart: embedded ? 'trust' : firstStart,
      nonce: () => randomBytes(9).toString('base64url'),
    },
    clock,
    events,
  );
  return new QuorumClaims(voters, { ...config.claims, voterTimeoutMs: timeoutMs }, clock, events);
}
