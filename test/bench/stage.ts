/** What is measured: three redis-servers, the application, and a gateway as the image runs it. Each is a process of its own. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from '../../build.ts';
import { systemClock } from '../../src/clock.ts';
import { startGateway, type Gateway } from '../../src/demo/gateway.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { environment } from '../chart/image.ts';
import { votersUp } from '../support/cluster.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import type { ApplicationAnswer } from './application.ts';
import { startWorker, type Worker } from './worker.ts';

/** What the image's share of a container's memory comes to under the charts' limit of 192 MiB. This machine's memory is no limit. */
const HEAP_MB = 96;

export interface Stage extends AsyncDisposable {
  readonly nodes: readonly RedisServer[];
  readonly application: Worker<object, ApplicationAnswer>;
  readonly applicationPort: number;
  readonly gateway: Gateway;
  readonly gatewayPort: number;
  readonly gatewayPid: number;
}

/** `bundle`: of `buildBundle`. */
export async function setStage(bundle: string): Promise<Stage> {
  await using stack = new AsyncDisposableStack();
  const nodes = await startNodes(stack);
  const application = stack.use(startWorker<object, ApplicationAnswer>(new URL('./application.ts', import.meta.url)));
  const { port: applicationPort } = await application.run({});
  const config = gatewayConfig(
    `http://127.0.0.1:${applicationPort}`,
    nodes.map(({ url }) => url),
    // Patience, for a machine that does other things too: a 503 would be faster than a delivery.
    { upstream: { maxWaiting: 4_096 }, redis: { timeout: '1s' }, claims: { budget: '4s' } },
  );
  const program = { node: '/bin/sh', entry: join(bundle, 'start.sh') };
  const gateway = stack.use(await startGateway(program, systemClock, { config, files: secretFiles }));
  await votersUp(gateway, nodes.length);
  const owned = stack.move();
  return {
    ...{ nodes, application, applicationPort, gateway },
    gatewayPort: Number(new URL(gateway.url).port),
    gatewayPid: gateway.child.pid!,
    async [Symbol.asyncDispose]() {
      // Not killed: Node writes its profiles at the end.
      await gateway.terminate();
      await owned.disposeAsync();
    },
  };
}

/** Three of them, on disk as the charts run them. */
export async function startNodes(stack: AsyncDisposableStack): Promise<RedisServer[]> {
  const nodes = await Promise.all([1, 2, 3].map(() => startRedisServer({ appendonly: 'everysec' })));
  for (const node of nodes) stack.use(node);
  return nodes;
}

/** A new folder with what `npm run build` makes, started by `start.sh` with the image's environment. */
export async function buildBundle(stack: AsyncDisposableStack): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hookonce-bench-'));
  stack.defer(async () => await rm(folder, { recursive: true }));
  await build(join(folder, 'dist'));
  const options = environment['NODE_OPTIONS']!.replace(
    '--max-old-space-size-percentage=50',
    `--max-old-space-size=${HEAP_MB}`,
  );
  if (options === environment['NODE_OPTIONS']) throw new Error('the image divides memory in another way: see HEAP_MB');
  const settings = Object.entries({ ...environment, NODE_OPTIONS: options }).map(
    ([name, value]) => `${name}='${value}'`,
  );
  // For profiles and for trials of other flags.
  const flags = process.env['HOOKONCE_BENCH_NODE_FLAGS'] ?? '';
  // The log is written, but read by nobody: who reads it is not what is measured.
  const command = `exec env ${settings.join(' ')} ${process.execPath} ${flags} ${join(folder, 'dist/main.js')} "$@"`;
  await writeFile(join(folder, 'start.sh'), `${command} >/dev/null\n`);
  await chmod(join(folder, 'start.sh'), 0o755);
  return folder;
}
