/**
 * `npm run memory`: what the image's program needs, under several limits, as a table in Markdown (docs/kubernetes.md).
 * One gateway in its own memory control group, three redis-servers and the application beside it.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { systemClock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { scriptedApplication } from '../support/application.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import { github } from '../support/deliveries.ts';
import { confined } from './confined.ts';
import { builtImage, command, environment } from './image.ts';

const MiB = 1024 ** 2;
const deliveries = 10_000;
const atOnce = 50;
const body = JSON.stringify({ text: 'x'.repeat(4096) });

const variants = [
  { limit: 128, options: environment['NODE_OPTIONS']! },
  { limit: 192, options: environment['NODE_OPTIONS']! },
  { limit: 256, options: environment['NODE_OPTIONS']! },
  { limit: 192, options: '' },
];

await using stack = new AsyncDisposableStack();
const folder = await builtImage();
stack.defer(() => rmSync(folder, { recursive: true }));
const application = stack.use(await scriptedApplication());
const nodes = await Promise.all([1, 2, 3].map(() => startRedisServer()));
for (const node of nodes) stack.use(node);

console.log(`| limit | Node's options | idle | after ${deliveries} deliveries of 4 KiB, ${atOnce} at once | most |`);
console.log('| --- | --- | --- | --- | --- |');
for (const { limit, options } of variants) {
  const { idle, loaded, peak } = await measured(limit, options);
  const name = options === '' ? 'none' : "the image's";
  console.log(`| ${limit} MiB | ${name} | ${idle} MiB | ${loaded} MiB | ${peak} MiB |`);
}

async function measured(limitMiB: number, options: string): Promise<{ idle: number; loaded: number; peak: number }> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const ports = { listen: { host: '127.0.0.1', port }, admin: { host: '127.0.0.1', port: adminPort } };
  // Patience, for a machine that does other things too.
  const patience = { redis: { timeout: '1s' }, claims: { budget: '4s' } };
  const config = {
    ...gatewayConfig(
      application.url,
      nodes.map(({ url }) => url),
      patience,
    ),
    ...ports,
    log: { level: 'warn' },
  };
  mkdirSync(join(folder, 'etc'), { recursive: true });
  for (const [name, text] of Object.entries({ ...secretFiles, 'config.yaml': stringify(config) }))
    writeFileSync(join(folder, 'etc', name), text);
  const env = { ...environment, NODE_OPTIONS: options, HOOKONCE_CONFIG: join(folder, 'etc/config.yaml') };
  await using gateway = confined(command, limitMiB * MiB, { cwd: join(folder, 'app'), env });
  await until(systemClock, 'three voters', async () => {
    if (!gateway.child.running()) throw new Error(gateway.child.lines.join('\n'));
    const metrics = (await exchange(`http://127.0.0.1:${adminPort}/metrics`)).body.toString();
    return metrics.match(/state="up"\} 1/g)?.length === 3 ? true : undefined;
  });
  await systemClock.sleep(2000);
  const idle = resident(gateway.pid());

  let next = 0;
  const sender = async (): Promise<void> => {
    while (next < deliveries) {
      const id = `${limitMiB}-${options.length}-${(next += 1)}`;
      const reply = await exchange(`http://127.0.0.1:${port}/github`, { method: 'POST', ...github(id, body) });
      if (reply.status !== 200) throw new Error(`${id} was answered ${reply.status}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, sender));
  return { idle, loaded: resident(gateway.pid()), peak: Math.round(gateway.peak() / MiB) };
}

/** MiB. */
function resident(pid: number): number {
  return Math.round(Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024);
}
