/** Three real redis-servers, two gateway processes with a proxy of their own before each node, and an application behind each gateway. */
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
import { program } from '../support/program.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { History, type Execution } from './history.ts';

export const NODES = 3;
export const GATEWAYS = 2;

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
  readonly nodes: readonly RedisServer[];
  /** By gateway and node. */
  readonly proxies: readonly (readonly TcpProxy[])[];
  readonly gateways: readonly Gateway[];
  /** Resolves when every gateway counts every voter. */
  whole(): Promise<void>;
  /** Locks that will outlive the longest life of a lock, or for ever. */
  overstayed(): Promise<string[]>;
}

export async function startWorld(times: Times, random: Random): Promise<World> {
  await using starting = new AsyncDisposableStack();
  const history = new History();
  const nodes = await Promise.all(
    count(NODES, async () => starting.use(await startRedisServer({ appendonly: 'everysec' }))),
  );
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
          redis: { timeout: ms(times.redisMs) },
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
    for (const gateway of gateways) await votersUp(gateway, NODES);
  };
  await whole();
  const stack = starting.move();
  return {
    ...{ times, history, nodes, proxies, gateways, whole },
    async overstayed() {
      const found = await Promise.all(nodes.map(async (node) => await locksBeyond(node, times.lockTtlMs)));
      return found.flat();
    },
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
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
