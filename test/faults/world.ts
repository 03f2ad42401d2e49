/** Real redis-servers, two gateway processes with a proxy of their own before each, and an application behind each gateway. */
import { systemClock as clock } from '../../src/clock.ts';
import { startApplication, type Handler } from '../../src/demo/application.ts';
import { header } from '../../src/core/delivery.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { startGateway, type Gateway } from '../../src/demo/gateway.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import type { Random } from '../simulation/random.ts';
import { votersUp } from '../support/cluster.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import { onNode } from '../support/keys.ts';
import { sum } from '../support/metrics.ts';
import { program } from '../support/program.ts';
import { startRedisCluster, urlsOf, type RedisCluster } from '../support/redis-cluster.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { History, type Execution } from './history.ts';

export const GATEWAYS = 2;
const WATCH_MS = 400;

/** What votes: so many servers, and a Redis Cluster with a replica of each shard beside them. */
export interface SetUp {
  readonly servers: number;
  readonly cluster: boolean;
}

export const SET_UPS = {
  'one Redis': { servers: 1, cluster: false },
  'three Redis': { servers: 3, cluster: false },
  'five Redis': { servers: 5, cluster: false },
  'a cluster and two Redis': { servers: 2, cluster: true },
} as const satisfies Readonly<Record<string, SetUp>>;

/** In milliseconds; the checks of the start hold for them. */
export interface Times {
  readonly lockTtlMs: number;
  readonly budgetMs: number;
  readonly redisMs: number;
  readonly upstreamMs: number;
}

export interface World extends AsyncDisposable {
  readonly times: Times;
  readonly history: History;
  /** How many voters there are: the nodes, and the cluster. */
  readonly voters: number;
  readonly nodes: readonly RedisServer[];
  readonly cluster: RedisCluster | undefined;
  /** By gateway and node. */
  readonly proxies: readonly (readonly TcpProxy[])[];
  readonly gateways: readonly Gateway[];
  /** Resolves when every gateway counts every voter. */
  whole(): Promise<void>;
  /** Locks that will outlive the longest life of a lock, or for ever. */
  overstayed(): Promise<string[]>;
}

/** `env`: of each server, by its place. */
export async function startWorld(
  times: Times,
  random: Random,
  setUp: SetUp = SET_UPS['three Redis'],
  env?: (node: number) => Readonly<Record<string, string | undefined>>,
): Promise<World> {
  await using starting = new AsyncDisposableStack();
  const history = new History();
  const nodes = await Promise.all(
    Array.from({ length: setUp.servers }, async (_, node) =>
      starting.use(await startRedisServer({ appendonly: 'everysec', ...(env && { env: env(node) }) })),
    ),
  );
  const cluster = setUp.cluster
    ? starting.use(await startRedisCluster({ replicas: 1, nodeTimeoutMs: 500, appendonly: 'everysec' }))
    : undefined;
  const voters = nodes.length + (cluster ? 1 : 0);
  const proxies = await Promise.all(
    count(
      GATEWAYS,
      async () => await Promise.all(nodes.map(async ({ port }) => starting.use(await startTcpProxy(clock, port)))),
    ),
  );
  const gateways = await Promise.all(
    proxies.map(async (own, gateway) => {
      const application = starting.use(
        await startApplication(work(gateway, history, times, random), { port: await freePort() }),
      );
      const ms = (value: number): string => `${value}ms`;
      const config = gatewayConfig(
        application.url,
        own.map(({ url }) => url),
        {
          upstream: { timeout: ms(times.upstreamMs) },
          redis: {
            timeout: ms(times.redisMs),
            nodes: [...own.map(({ url }) => ({ url })), ...(cluster ? [{ cluster: urlsOf(cluster) }] : [])],
          },
          claims: {
            ...{ lockTtl: ms(times.lockTtlMs), unknownHold: ms(times.lockTtlMs), budget: ms(times.budgetMs) },
            ...{ relyOnWatchdog: true, recoverAfter: '1s' },
          },
          route: { inFlight: { policy: 'wait', wait: '300ms' } },
          log: { level: 'warn' },
        },
      );
      return starting.use(await startGateway(program, clock, { config, files: secretFiles }));
    }),
  );
  const whole = async (): Promise<void> => {
    for (const gateway of gateways) await votersUp(gateway, voters);
  };
  await whole();
  for (const [at, gateway] of gateways.entries()) starting.use(watchOver(gateway, at, history, times));
  const stack = starting.move();
  return {
    ...{ times, history, voters, nodes, cluster, proxies, gateways, whole },
    async overstayed() {
      const found = await Promise.all(nodes.map(async (node) => await locksBeyond(node, times.lockTtlMs)));
      return found.flat();
    },
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  };
}

/** A process that a busy machine does not let run for a good part of a lock's life sleeps like one that is stopped. */
function watchOver(gateway: Gateway, at: number, history: History, { lockTtlMs }: Times): AsyncDisposable {
  const stop = new AbortController();
  const watching = (async (): Promise<void> => {
    let lastMs = clock.now();
    while (!stop.signal.aborted) {
      await clock.sleep(WATCH_MS, stop.signal);
      const page = await gateway.metrics().catch(() => undefined);
      if (page === undefined) continue;
      // The longest delay of its event loop since it was asked last.
      const lagMs = sum([page], 'nodejs_eventloop_lag_max_seconds') * 1000;
      if (lagMs > lockTtlMs / 5) history.excuse('starved', at, lastMs - lagMs, clock.now());
      lastMs = clock.now();
    }
  })();
  return {
    async [Symbol.asyncDispose]() {
      stop.abort();
      await watching;
    },
  };
}

async function locksBeyond(node: RedisServer, lifeMs: number): Promise<string[]> {
  return await onNode(node, async (redis) => {
    const locks = await redis.keys('ho:*:l');
    const left = await Promise.all(locks.map(async (lock) => await redis.pttl(lock)));
    return locks.flatMap((lock, at) =>
      left[at] === -1 || left[at]! > lifeMs ? [`${lock} on ${node.port}: ${left[at]} ms`] : [],
    );
  });
}

/** Mostly quick, sometimes failing, rarely later than the gateway waits. */
function work(gateway: number, history: History, times: Times, random: Random): Handler {
  return async ({ headers, attempt }) => {
    const event = header(headers, 'x-github-delivery') ?? '';
    const execution: Execution = {
      event,
      gateway,
      attempt,
      startedMs: clock.now(),
      endedMs: undefined,
      status: undefined,
    };
    history.executions.push(execution);
    const late = random.chance(0.01);
    await clock.sleep(late ? times.upstreamMs * 1.5 : random.between(1, 40) * (random.chance(0.1) ? 5 : 1));
    execution.status = random.chance(0.05) ? 500 : 200;
    execution.endedMs = clock.now();
    return { status: execution.status };
  };
}

function count<T>(times: number, make: () => T): T[] {
  return Array.from({ length: times }, make);
}
