/** What can be done to a world. Each fault strikes, lasts, and is over when it resolves; it leaves behind what it excuses. */
import { systemClock as clock } from '../../src/clock.ts';
import type { Random } from '../simulation/random.ts';
import { onNode } from '../support/keys.ts';
import { GATEWAYS, NODES, type World } from './world.ts';

export interface Fault {
  readonly name: string;
  strike(world: World, random: Random): Promise<void>;
}

/** Long enough for locks to run out, and for several deliveries to fail. */
const lasting = ({ times }: World): number => times.lockTtlMs * 1.2;
/** The breaker asks a voter that was silent every two seconds. */
const PROBE_MS = 2_500;

const two = (random: Random): [number, number] => {
  const spared = random.integer(0, NODES - 1);
  return [0, 1, 2].filter((node) => node !== spared) as [number, number];
};

/** Runs `during`; from its beginning until the voters have surely been asked again, the gateways may lose their locks. */
async function cutOff(world: World, gateway: number | 'all', during: () => Promise<void>): Promise<void> {
  const fromMs = clock.now();
  await during();
  world.history.excuse('cut off', gateway, fromMs, clock.now() + PROBE_MS);
}

async function restarted(world: World, node: number, empty: boolean): Promise<void> {
  const server = world.nodes[node]!;
  if (empty) await onNode(server, async (redis) => await redis.flushall());
  await server.kill();
  await server.start();
}

async function outOfMemory(world: World, nodes: readonly number[]): Promise<void> {
  const limit = async (maxmemory: string): Promise<unknown> =>
    await Promise.all(
      nodes.map(
        async (node) =>
          await onNode(world.nodes[node]!, async (redis) => await redis.config('SET', 'maxmemory', maxmemory)),
      ),
    );
  await limit('1');
  await clock.sleep(lasting(world));
  await limit('0');
}

export const faults: readonly Fault[] = [
  {
    name: 'one node frozen',
    async strike(world, random) {
      const node = random.pick(world.nodes);
      node.freeze();
      await clock.sleep(lasting(world));
      node.thaw();
    },
  },
  {
    name: 'two nodes frozen',
    strike: async (world, random) =>
      await cutOff(world, 'all', async () => {
        const nodes = two(random).map((node) => world.nodes[node]!);
        for (const node of nodes) node.freeze();
        await clock.sleep(lasting(world));
        for (const node of nodes) node.thaw();
      }),
  },
  {
    name: 'one node killed and started with its file',
    strike: async (world, random) => await restarted(world, random.integer(0, NODES - 1), false),
  },
  {
    name: 'one node killed and started empty',
    strike: async (world, random) => await restarted(world, random.integer(0, NODES - 1), true),
  },
  {
    name: 'one node flushed',
    strike: async (world, random) =>
      void (await onNode(random.pick(world.nodes), async (redis) => await redis.flushall())),
  },
  {
    name: 'scripts flushed everywhere',
    strike: async (world) =>
      void (await Promise.all(
        world.nodes.map(async (node) => await onNode(node, async (redis) => await redis.script('FLUSH'))),
      )),
  },
  {
    name: 'one node paused',
    strike: async (world, random) => {
      await onNode(
        random.pick(world.nodes),
        async (redis) => await redis.call('CLIENT', 'PAUSE', lasting(world), random.pick(['ALL', 'WRITE'])),
      );
      await clock.sleep(lasting(world));
    },
  },
  {
    name: 'one node out of memory',
    strike: async (world, random) => await outOfMemory(world, [random.integer(0, NODES - 1)]),
  },
  {
    name: 'two nodes out of memory',
    strike: async (world, random) => await cutOff(world, 'all', async () => await outOfMemory(world, two(random))),
  },
  {
    name: 'one gateway cut off from two nodes',
    async strike(world, random) {
      const gateway = random.integer(0, GATEWAYS - 1);
      await cutOff(world, gateway, async () => {
        const proxies = two(random).map((node) => world.proxies[gateway]![node]!);
        for (const proxy of proxies) {
          if (random.chance(0.5)) proxy.cut();
          else proxy.stall();
        }
        await clock.sleep(lasting(world));
        for (const proxy of proxies) proxy.heal();
      });
    },
  },
  {
    name: 'replies of one node lost to one gateway',
    async strike(world, random) {
      const proxy = random.pick(random.pick(world.proxies));
      proxy.loseReplies();
      await clock.sleep(lasting(world));
      proxy.heal();
    },
  },
  {
    name: 'replies of two nodes lost to one gateway',
    async strike(world, random) {
      const gateway = random.integer(0, GATEWAYS - 1);
      await cutOff(world, gateway, async () => {
        const proxies = two(random).map((node) => world.proxies[gateway]![node]!);
        for (const proxy of proxies) proxy.loseReplies();
        await clock.sleep(lasting(world));
        for (const proxy of proxies) proxy.heal();
      });
    },
  },
  {
    name: 'one node slow for one gateway',
    async strike(world, random) {
      const proxy = random.pick(random.pick(world.proxies));
      proxy.delay(random.between(0.3, 2) * world.times.redisMs);
      await clock.sleep(lasting(world));
      proxy.heal();
    },
  },
  {
    name: 'all connections of one node reset',
    async strike(world, random) {
      const node = random.integer(0, NODES - 1);
      for (const own of world.proxies) own[node]!.cut();
      for (const own of world.proxies) own[node]!.heal();
    },
  },
  {
    name: 'one gateway asleep for longer than a lock lives',
    async strike(world, random) {
      const gateway = random.integer(0, GATEWAYS - 1);
      const fromMs = clock.now();
      world.gateways[gateway]!.child.signal('SIGSTOP');
      await clock.sleep(lasting(world));
      world.gateways[gateway]!.child.signal('SIGCONT');
      world.history.excuse('asleep', gateway, fromMs, clock.now() + 500);
    },
  },
  {
    name: 'one gateway killed and started again',
    async strike(world, random) {
      const gateway = random.integer(0, GATEWAYS - 1);
      const fromMs = clock.now();
      await world.gateways[gateway]!.restart();
      world.history.excuse('dead', gateway, fromMs, clock.now());
    },
  },
];
