/** Two gateways with everything that a gateway can have, an application, and a Prometheus that watches. */
import { systemClock } from '../../src/clock.ts';
import { startGateway, type Gateway } from '../../src/demo/gateway.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import type { Reply } from '../../src/demo/exchange.ts';
import { until } from '../../src/demo/until.ts';
import { scriptedApplication, type ScriptedApplication } from '../support/application.ts';
import { post, votersUp } from '../support/cluster.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import { github } from '../support/deliveries.ts';
import { sum } from '../support/metrics.ts';
import { startPostgres, type Postgres } from '../support/postgres.ts';
import { program } from '../support/program.ts';
import { startCollector } from './collector.ts';
import { startPrometheus, type Prometheus } from './prometheus.ts';

export type Path = '/sync' | '/jobs' | '/open' | '/watched';

export interface Stage extends AsyncDisposable {
  readonly voters: readonly RedisServer[];
  readonly queue: RedisServer;
  readonly ledger: Postgres;
  readonly gateways: readonly [Gateway, Gateway];
  readonly application: ScriptedApplication;
  readonly prometheus: Prometheus;
  /** The configuration of gateway `n`, with other settings on top, written where it will read it anew. */
  configure(n: 0 | 1, more: Readonly<Record<string, unknown>>): Promise<void>;
  deliver(path: Path, id: string, secret?: string): Promise<Reply>;
  /** `count` events, a few at a time. */
  many(path: Path, name: string, count: number, secret?: string): Promise<void>;
}

const route = (name: string, more: object) => ({
  ...{ name, path: `/${name}`, sender: 'github', secrets: [{ file: './github.secret' }], ...more },
});

export async function startStage(): Promise<Stage> {
  await using starting = new AsyncDisposableStack();
  const application = starting.use(await scriptedApplication());
  const [voters, queue, ledger, collector] = await Promise.all([
    Promise.all([1, 2, 3].map(async () => starting.use(await startRedisServer({ appendonly: 'everysec' })))),
    startRedisServer({ appendonly: 'always', args: ['--maxmemory-policy', 'noeviction'] }),
    startPostgres(),
    startCollector(),
  ]);
  for (const one of [queue, ledger, collector]) starting.use(one);

  const config = {
    ...gatewayConfig(
      application.url,
      voters.map(({ url }) => url),
    ),
    // Patient with a busy machine: what is judged here is what is told, not how fast it is.
    redis: { nodes: voters.map(({ url }) => ({ url })), timeout: '1s' },
    claims: { firstStart: 'trust', budget: '4s', lockTtl: '20s' },
    upstream: { url: application.url, timeout: '5s', maxInFlight: 8, maxWaiting: 0 },
    queue: { url: queue.url, attempts: 2, backoff: { first: '50ms' } },
    ledger: { url: { file: './ledger.secret' }, timeout: '1s' },
    tracing: { otlp: collector.url },
    routes: [
      route('sync', {}),
      route('jobs', { mode: 'async' }),
      route('open', { onUnavailable: 'forward' }),
      route('watched', { observe: true }),
    ],
  };
  const files = { ...secretFiles, 'ledger.secret': ledger.url };
  const start = async (): Promise<Gateway> => starting.use(await startGateway(program, systemClock, { config, files }));
  const gateways = [await start(), await start()] as const;
  for (const gateway of gateways) {
    await votersUp(gateway, 3);
    await until(systemClock, 'queue and ledger', async () => {
      const page = [await gateway.metrics()];
      return sum(page, 'hookonce_queue_up') === 1 && sum(page, 'hookonce_ledger_up') === 1 ? true : undefined;
    });
  }
  const prometheus = starting.use(await startPrometheus({ 'orders-1': gateways[0], 'orders-2': gateways[1] }));

  let turn = 0;
  const deliver: Stage['deliver'] = async (path, id, secret) =>
    await post(gateways[(turn += 1) % 2]!, path, github(id, `{"of":"${id}"}`, secret));
  const stack = starting.move();
  return {
    ...{ voters, queue, ledger, gateways, application, prometheus, deliver },
    configure: async (n, more) => await gateways[n].rewrite({ config: { ...config, ...more }, files }),
    async many(path, name, count, secret) {
      for (let n = 0; n < count; n += 5)
        await Promise.all(
          Array.from(
            { length: Math.min(5, count - n) },
            async (_, i) => await deliver(path, `${name}-${n + i}`, secret),
          ),
        );
    },
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  };
}
