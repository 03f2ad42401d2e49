/** What can be done to a world. Each fault strikes, lasts, and is over when it resolves; it leaves behind what it excuses. */
import { systemClock as clock } from '../../src/clock.ts';
import type { RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { TAGS } from '../../src/redis/slots.ts';
import type { Random } from '../simulation/random.ts';
import { onNode } from '../support/keys.ts';
import type { RedisCluster } from '../support/redis-cluster.ts';
import type { TcpProxy } from '../support/tcp-proxy.ts';
import type { World } from './world.ts';

export interface Fault {
  readonly name: string;
  /** How many voters are in trouble meanwhile, for whatever gateway. Not possible where the world has fewer servers. */
  voters(world: World): number;
  /** Whether these may have forgotten something. */
  readonly forgets: boolean;
  strike(world: World, random: Random): Promise<void>;
}

/** Long enough for locks to run out, and for several deliveries to fail. */
const lasting = ({ times }: World): number => times.lockTtlMs * 1.2;
/** The breaker asks a voter that was silent every two seconds. */
const PROBE_MS = 2_500;

const quorum = ({ voters }: World): number => Math.floor(voters / 2) + 1;
const one = (): number => 1;
/** As many as the service bears; none of one. */
const minority = ({ voters }: World): number => Math.floor((voters - 1) / 2);
const none = (): number => 0;

const some = <T>(all: readonly T[], count: number, random: Random): T[] =>
  all
    .map((each) => ({ each, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .slice(0, count)
    .map(({ each }) => each);

/** Runs `during`; from its beginning until the voters have surely been asked again, the gateways may lose their locks. */
async function cutOff(world: World, gateway: number | 'all', during: () => Promise<void>): Promise<void> {
  const fromMs = clock.now();
  await during();
  world.history.excuse('cut off', gateway, fromMs, clock.now() + PROBE_MS);
}

/** Something happens to so many servers. With a majority of the voters the gateways are cut off, and may forget. */
function onNodes(
  name: string,
  voters: (world: World) => number,
  strike: (nodes: readonly RedisServer[], world: World, random: Random) => Promise<void>,
  forgets = false,
): Fault {
  return {
    ...{ name, voters, forgets },
    async strike(world, random) {
      const nodes = some(world.nodes, voters(world), random);
      const during = async (): Promise<void> => await strike(nodes, world, random);
      if (nodes.length < quorum(world)) return await during();
      await cutOff(world, 'all', async () => {
        const fromMs = clock.now();
        await during();
        if (!forgets) return;
        await world.whole();
        world.history.excuse('forgotten', 'all', fromMs, clock.now());
      });
    },
  };
}

/** The network between one gateway and so many servers. */
function onLinks(
  name: string,
  voters: (world: World) => number,
  strike: (proxies: readonly TcpProxy[], world: World, random: Random) => Promise<void>,
): Fault {
  return {
    ...{ name, voters, forgets: false },
    async strike(world, random) {
      const gateway = random.integer(0, world.gateways.length - 1);
      const proxies = some(world.proxies[gateway]!, voters(world), random);
      const during = async (): Promise<void> => {
        await strike(proxies, world, random);
        await clock.sleep(lasting(world));
        for (const proxy of proxies) proxy.heal();
      };
      if (proxies.length < quorum(world)) await during();
      else await cutOff(world, gateway, during);
    },
  };
}

/** Something happens to whoever owns a slot of the cluster that is one of the voters. */
function onCluster(
  name: string,
  strike: (shard: RedisServer, cluster: RedisCluster, tag: string) => Promise<void>,
): Fault {
  return {
    ...{ name, forgets: false },
    voters: ({ cluster }) => (cluster ? 1 : Infinity),
    async strike({ cluster }, random) {
      const tag = random.pick(TAGS);
      const shard = await cluster!.ownerOf(tag);
      await inTurn(shard, async () => await strike(shard, cluster!, tag));
    },
  };
}

const replaced = async (cluster: RedisCluster, tag: string, shard: RedisServer): Promise<unknown> =>
  await until(clock, 'a replica that took over', async () => (await cluster.ownerOf(tag)) !== shard || undefined);

const freeze = async (nodes: readonly RedisServer[], world: World): Promise<void> => {
  for (const node of nodes) node.freeze();
  await clock.sleep(lasting(world));
  for (const node of nodes) node.thaw();
};

const outOfMemory = async (nodes: readonly RedisServer[], world: World): Promise<void> => {
  const limit = async (maxmemory: string): Promise<unknown> =>
    await Promise.all(
      nodes.map(async (node) => await onNode(node, async (redis) => await redis.config('SET', 'maxmemory', maxmemory))),
    );
  await limit('1');
  await clock.sleep(lasting(world));
  await limit('0');
};

/** Two faults at once do not start one server twice. */
const turns = new WeakMap<RedisServer, Promise<unknown>>();
async function inTurn(node: RedisServer, work: () => Promise<void>): Promise<void> {
  const mine = (turns.get(node) ?? Promise.resolve()).then(work);
  turns.set(
    node,
    mine.catch(() => {}),
  );
  await mine;
}

const restart = async (nodes: readonly RedisServer[]): Promise<void> => {
  for (const node of nodes)
    await inTurn(node, async () => {
      await node.kill();
      await node.start();
    });
};

const flush = async (nodes: readonly RedisServer[]): Promise<void> =>
  void (await Promise.all(nodes.map(async (node) => await onNode(node, async (redis) => await redis.flushall()))));

const restartEmpty = async (nodes: readonly RedisServer[]): Promise<void> => {
  await flush(nodes);
  await restart(nodes);
};

const cut = async (proxies: readonly TcpProxy[], _: World, random: Random): Promise<void> => {
  for (const proxy of proxies) {
    if (random.chance(0.5)) proxy.cut();
    else proxy.stall();
  }
};

const loseReplies = async (proxies: readonly TcpProxy[]): Promise<void> => {
  for (const proxy of proxies) proxy.loseReplies();
};

export const faults: readonly Fault[] = [
  onNodes('one node frozen', one, freeze),
  onNodes('a majority of the nodes frozen', quorum, freeze),
  onNodes('one node killed and started with its file', one, restart),
  onNodes('one node killed and started empty', one, restartEmpty, true),
  onNodes('one node flushed', one, flush, true),
  onNodes('as many nodes as the service bears killed and started with their files', minority, restart),
  onNodes('as many nodes as the service bears flushed', minority, flush, true),
  onNodes('a majority of the nodes flushed', quorum, flush, true),
  onNodes('a majority of the nodes killed and started empty', quorum, restartEmpty, true),
  {
    ...{ name: 'scripts flushed everywhere', voters: none, forgets: false },
    strike: async (world) =>
      void (await Promise.all(
        world.nodes.map(async (node) => await onNode(node, async (redis) => await redis.script('FLUSH'))),
      )),
  },
  onNodes('one node paused', one, async ([node], world, random) => {
    await onNode(
      node!,
      async (redis) => await redis.call('CLIENT', 'PAUSE', lasting(world), random.pick(['ALL', 'WRITE'])),
    );
    await clock.sleep(lasting(world));
  }),
  onNodes('one node out of memory', one, outOfMemory),
  onNodes('a majority of the nodes out of memory', quorum, outOfMemory),
  onLinks('one gateway cut off from one node', one, cut),
  onLinks('one gateway cut off from a majority of the nodes', quorum, cut),
  onLinks('replies of one node lost to one gateway', one, loseReplies),
  onLinks('replies of a majority of the nodes lost to one gateway', quorum, loseReplies),
  onLinks('one node slow for one gateway', one, async ([proxy], { times }, random) =>
    proxy!.delay(random.between(0.3, 2) * times.redisMs),
  ),
  {
    ...{ name: 'all connections of one node reset', voters: none, forgets: false },
    async strike(world, random) {
      const node = random.integer(0, world.nodes.length - 1);
      const reset = async (): Promise<void> => {
        for (const own of world.proxies) own[node]!.cut();
        for (const own of world.proxies) own[node]!.heal();
      };
      if (world.voters > 1) await reset();
      else await cutOff(world, 'all', reset);
    },
  },
  onCluster('a shard of the cluster killed, and replaced by its replica', async (shard, cluster, tag) => {
    await shard.kill();
    await replaced(cluster, tag, shard);
    await shard.start();
  }),
  onCluster('a shard of the cluster frozen, and replaced by its replica', async (shard, cluster, tag) => {
    shard.freeze();
    await replaced(cluster, tag, shard);
    shard.thaw();
  }),
  onCluster('a slot of the cluster moved to another shard', async (shard, cluster, tag) => {
    const owners = await Promise.all(TAGS.map(async (each) => await cluster.ownerOf(each)));
    await cluster.move(
      tag,
      owners.find((owner) => owner !== shard)!,
    );
  }),
  {
    ...{ name: 'one gateway asleep for longer than a lock lives', voters: none, forgets: false },
    async strike(world, random) {
      const gateway = random.integer(0, world.gateways.length - 1);
      const fromMs = clock.now();
      world.gateways[gateway]!.child.signal('SIGSTOP');
      await clock.sleep(lasting(world));
      world.gateways[gateway]!.child.signal('SIGCONT');
      world.history.excuse('asleep', gateway, fromMs, clock.now() + 500);
    },
  },
  {
    ...{ name: 'one gateway killed and started again', voters: none, forgets: false },
    async strike(world, random) {
      const gateway = random.integer(0, world.gateways.length - 1);
      const fromMs = clock.now();
      await world.gateways[gateway]!.restart();
      world.history.excuse('dead', gateway, fromMs, clock.now());
    },
  },
];

/** Those that can strike there. */
export const faultsOf = (world: World): Fault[] =>
  faults.filter(({ voters, name }) => {
    const count = voters(world);
    return count <= world.voters && (count > 0 || !name.startsWith('as many'));
  });

/** Both at once: what two of them together bring about, a majority of voters in trouble or forgetful, is theirs to excuse. */
export async function strikeBoth(pair: readonly [Fault, Fault], world: World, random: Random): Promise<void> {
  const fromMs = clock.now();
  await Promise.all(pair.map(async ({ strike }) => await strike(world, random)));
  await world.whole();
  const [first, second] = pair;
  if (first.voters(world) + second.voters(world) >= quorum(world))
    world.history.excuse('cut off', 'all', fromMs, clock.now());
  const forgetful = pair.reduce((sum, fault) => sum + (fault.forgets ? fault.voters(world) : 0), 0);
  if (forgetful >= quorum(world)) world.history.excuse('forgotten', 'all', fromMs, clock.now());
}
