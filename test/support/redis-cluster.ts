/** A real Redis Cluster: masters that share the slots, and a replica of each where it is to survive one. */
import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { slotOf, TAGS } from '../../src/redis/slots.ts';
import { onNode } from './keys.ts';

export interface RedisClusterOptions {
  readonly replicas?: 0 | 1;
  /** Without an answer for this long, a member is taken for dead. */
  readonly nodeTimeoutMs?: number;
  readonly appendonly?: 'always' | 'everysec';
}

export interface RedisCluster extends AsyncDisposable {
  /** Masters at first. */
  readonly shards: readonly RedisServer[];
  /** Of the shard at the same place. */
  readonly replicas: readonly RedisServer[];
  /** Whoever owns the slot of this tag now. */
  ownerOf(tag: string): Promise<RedisServer>;
  /** Hands the slot of a tag to another shard, keys and all. */
  move(tag: string, to: RedisServer): Promise<void>;
}

const SLOTS = 16_384;

export async function startRedisCluster(options: RedisClusterOptions = {}): Promise<RedisCluster> {
  await using starting = new AsyncDisposableStack();
  const { replicas: copies = 0, nodeTimeoutMs = 1_000, appendonly } = options;
  const member = async (): Promise<RedisServer> =>
    starting.use(
      await startRedisServer({
        ...(appendonly && { appendonly }),
        // The port of the bus is the other one and 10,000, if not said, which may be none.
        args: [
          ...['--cluster-enabled', 'yes', '--cluster-port', String(await freePort())],
          ...['--cluster-node-timeout', String(nodeTimeoutMs), '--cluster-replica-validity-factor', '0'],
          // Shards without a replica go on when another is down.
          ...['--cluster-require-full-coverage', 'no'],
        ],
      }),
    );
  const shards = await Promise.all([0, 1, 2].map(member));
  const replicas = copies === 0 ? [] : await Promise.all([0, 1, 2].map(member));
  const all = [...shards, ...replicas];
  await Promise.all(
    all.map(
      async (server, at) => await onNode(server, async (redis) => await redis.cluster('SET-CONFIG-EPOCH', at + 1)),
    ),
  );
  await Promise.all(
    shards.map(async (server, at) => {
      const [from, to] = [at, at + 1].map((place) => Math.floor((SLOTS * place) / 3));
      await onNode(server, async (redis) => await redis.call('CLUSTER', 'ADDSLOTSRANGE', from!, to! - 1));
    }),
  );
  for (const server of all.slice(1)) await meet(shards[0]!, server);
  await agreed(all);
  for (const [at, server] of replicas.entries()) {
    const master = await idOf(shards[at]!);
    await onNode(server, async (redis) => await redis.cluster('REPLICATE', master));
  }
  await Promise.all(replicas.map(linked));

  const ownerOf = async (tag: string): Promise<RedisServer> => {
    for (const server of all) if ((await mine(server)).has(slotOf(tag))) return server;
    throw new Error(`nobody has the slot of ${tag}`);
  };
  const stack = starting.move();
  return {
    ...{ shards, replicas, ownerOf },
    async move(tag, to) {
      const from = await ownerOf(tag);
      const slot = slotOf(tag);
      const [source, target] = [await idOf(from), await idOf(to)];
      await onNode(to, async (redis) => await redis.cluster('SETSLOT', slot, 'IMPORTING', source));
      await onNode(from, async (redis) => {
        await redis.cluster('SETSLOT', slot, 'MIGRATING', target);
        for (;;) {
          const keys = await redis.cluster('GETKEYSINSLOT', slot, 100);
          if (keys.length === 0) break;
          await redis.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5_000, 'KEYS', ...keys);
        }
      });
      for (const server of [to, from, ...shards])
        await onNode(server, async (redis) => await redis.cluster('SETSLOT', slot, 'NODE', target)).catch(() => {});
    },
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  };
}

/** The addresses of a configuration's `cluster`. */
export const urlsOf = ({ shards }: RedisCluster): string[] => shards.map(({ url }) => url);

async function meet(one: RedisServer, other: RedisServer): Promise<void> {
  const busPort = await onNode(other, async (redis) => {
    const [, port] = (await redis.call('CONFIG', 'GET', 'cluster-port')) as string[];
    return port!;
  });
  await onNode(one, async (redis) => await redis.call('CLUSTER', 'MEET', '127.0.0.1', other.port, busPort));
}

const idOf = async (server: RedisServer): Promise<string> =>
  await onNode(server, async (redis) => await redis.cluster('MYID'));

/** Every member knows of every other, and of an owner for each slot. */
async function agreed(all: readonly RedisServer[]): Promise<void> {
  for (const server of all)
    await until(systemClock, 'the cluster to agree', async () => {
      const info = await onNode(server, async (redis) => await redis.cluster('INFO'));
      const said = (name: string): string | undefined => new RegExp(`${name}:(\\w+)`).exec(info)?.[1];
      const known = Number(said('cluster_known_nodes')) === all.length;
      return (known && said('cluster_state') === 'ok' && Number(said('cluster_slots_assigned')) === SLOTS) || undefined;
    });
}

async function linked(replica: RedisServer): Promise<void> {
  await until(systemClock, 'a replica that follows', async () => {
    const info = await onNode(replica, async (redis) => await redis.info('replication'));
    return /role:slave/.test(info) && /master_link_status:up/.test(info) ? true : undefined;
  });
}

/** The slots that it serves itself, by its own account; none where it does not answer. */
async function mine(server: RedisServer): Promise<Set<number>> {
  const redis = new Redis(server.url, { lazyConnect: true, retryStrategy: () => null, commandTimeout: 500 });
  redis.on('error', () => {});
  try {
    await redis.connect();
    const nodes = String(await redis.cluster('NODES')).split('\n');
    const own = nodes.find((line) => line.includes('myself')) ?? '';
    const ranges = own.split(' ').slice(8);
    const slots = TAGS.map(slotOf).filter((slot) =>
      ranges.some((range) => {
        const [from, to = from] = range.split('-').map(Number);
        return from! <= slot && slot <= to!;
      }),
    );
    return new Set(slots);
  } catch {
    return new Set();
  } finally {
    redis.disconnect();
  }
}
