/** Several real redis-servers, gateways that share them, and the application behind: what most tests stand on. */
import { systemClock } from '../../src/clock.ts';
import { exchange, type Message, type Reply } from '../../src/demo/exchange.ts';
import { startGateway, type Gateway } from '../../src/demo/gateway.ts';
import { startRedisServer, type RedisOptions, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { scriptedApplication, type ScriptedApplication } from './application.ts';
import { gatewayConfig, secretFiles, type Settings } from './config.ts';
import { sum } from './metrics.ts';
import { program } from './program.ts';
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

export interface ClusterOptions {
  /** Redis nodes, 3 unless said. */
  readonly nodes?: number;
  /** Gateways, 2 unless said. */
  readonly gateways?: number;
  /** Whether gateways reach the nodes through `proxies`. */
  readonly proxied?: boolean;
  readonly redis?: RedisOptions;
  readonly settings?: Settings;
  /** More files beside the configuration. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface Cluster extends AsyncDisposable {
  readonly nodes: readonly RedisServer[];
  /** One before each node, in the same order; empty unless asked for. */
  readonly proxies: readonly TcpProxy[];
  readonly gateways: readonly Gateway[];
  readonly application: ScriptedApplication;
  /** Posts to a path of gateway `n`, counted round. */
  post(n: number, path: string, message: Message): Promise<Reply>;
  /** Another gateway on the same nodes and application, once it counts `voters` (all unless said); ends with the cluster. */
  gateway(settings?: Settings, voters?: number): Promise<Gateway>;
  /** Sum of a metric over all gateways of the start. */
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
}

export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  await using starting = new AsyncDisposableStack();
  const application = starting.use(await scriptedApplication());
  const nodes = await Promise.all(times(options.nodes ?? 3, () => startRedisServer(options.redis)));
  for (const node of nodes) starting.use(node);
  const proxies =
    options.proxied === true ? await Promise.all(nodes.map(({ port }) => startTcpProxy(systemClock, port))) : [];
  for (const proxy of proxies) starting.use(proxy);
  const urls = (options.proxied === true ? proxies : nodes).map(({ url }) => url);

  const gateway = async (settings = options.settings, voters = Math.max(1, urls.length)): Promise<Gateway> => {
    const config = gatewayConfig(application.url, urls, settings);
    await using unready = new AsyncDisposableStack();
    const started = unready.use(
      await startGateway(program, systemClock, { config, files: { ...secretFiles, ...options.files } }),
    );
    await votersUp(started, voters);
    unready.move();
    return started;
  };
  const gateways = await Promise.all(times(options.gateways ?? 2, () => gateway()));
  for (const each of gateways) starting.use(each);

  const stack = starting.move();
  return {
    ...{ nodes, proxies, gateways, application },
    post: (n, path, message) => post(gateways[n % gateways.length]!, path, message),
    gateway: async (...given) => stack.use(await gateway(...given)),
    metric: async (name, labels) => sum(await Promise.all(gateways.map((each) => each.metrics())), name, labels),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

export function post(gateway: Gateway, path: string, message: Message): Promise<Reply> {
  return exchange(gateway.url + path, { method: 'POST', ...message });
}

/** Resolves when the gateway counts `count` voters. */
export async function votersUp(gateway: Gateway, count: number): Promise<void> {
  await until(systemClock, `${count} voters that are up`, async () => {
    const up = sum([await gateway.metrics()], 'hookonce_voter_state', { state: 'up' });
    return up === count ? true : undefined;
  });
}

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}
