/** Gateways with a queue: real voters, a real queue server, and the application behind. */
import { systemClock } from '../../src/clock.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { startCluster, type Cluster, type ClusterOptions } from './cluster.ts';
import { gatewayConfig, routes, type Settings } from './config.ts';
import { startPostgres, type Postgres } from './postgres.ts';

export type Store = 'Redis' | 'PostgreSQL';

export interface AsyncCluster extends Cluster {
  /** The server of the queue. */
  readonly store: RedisServer | Postgres;
  /** The configuration of its gateways. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Of `hookonce_queue_depth`, as the first gateway tells it. */
  depth(state: 'waiting' | 'delayed' | 'active' | 'dead'): Promise<number>;
}

export interface AsyncOptions extends Omit<ClusterOptions, 'settings'> {
  readonly store?: Store;
  readonly queue?: Readonly<Record<string, unknown>>;
  readonly settings?: ClusterOptions['settings'];
}

/** Soon again, and often. */
export const eager = { attempts: 50, backoff: { first: '100ms', max: '500ms' } } as const;

export async function startAsyncCluster(options: AsyncOptions = {}): Promise<AsyncCluster> {
  const { store: kind = 'Redis', queue = {}, settings = {}, ...rest } = options;
  await using starting = new AsyncDisposableStack();
  const store = starting.use(
    kind === 'Redis' ? await startRedisServer({ appendonly: 'always' }) : await startPostgres({ fsync: false }),
  );
  const whole: Settings = {
    ...settings,
    routes: (settings.routes ?? routes).map((route) => ({ mode: 'async', ...route })),
    top: { queue: { url: urlOf(store), ...loginOf(store), ...queue }, ...settings.top },
  };
  const cluster = starting.use(await startCluster({ ...rest, settings: whole }));
  for (const gateway of cluster.gateways) await queueUp(gateway);
  const stack = starting.move();
  return {
    ...cluster,
    store,
    config: gatewayConfig(
      cluster.application.url,
      cluster.nodes.map(({ url }) => url),
      whole,
    ),
    depth: async (state) => await depthOf(cluster.gateways[0]!, state),
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  };
}

interface Told {
  metrics(): Promise<string>;
}

export async function queueUp(gateway: Told): Promise<void> {
  await until(systemClock, 'a queue that is up', async () =>
    /^hookonce_queue_up 1$/m.test(await gateway.metrics()) ? true : undefined,
  );
}

async function depthOf(gateway: Told, state: string): Promise<number> {
  const found = new RegExp(`^hookonce_queue_depth\\{queue="async",state="${state}"\\} (\\d+)$`, 'm').exec(
    await gateway.metrics(),
  );
  return Number(found?.[1] ?? Number.NaN);
}

/** Without the user, who comes apart. */
const urlOf = (store: RedisServer | Postgres): string => store.url.replace('hookonce@', '');
const loginOf = (store: RedisServer | Postgres): object => (store.url.includes('@') ? { username: 'hookonce' } : {});

/** Resolves when nothing waits, is delayed or worked on any more. */
export async function drained(cluster: AsyncCluster): Promise<void> {
  await until(systemClock, 'an empty queue', async () => {
    for (const state of ['waiting', 'delayed', 'active'] as const)
      if ((await cluster.depth(state)) !== 0) return undefined;
    return true;
  });
}
