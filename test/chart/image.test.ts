/** What goes into the image, run as its container runs it. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { stringify } from 'yaml';
import { systemClock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { until } from '../../src/demo/until.ts';
import { root } from '../setup/tool.ts';
import { held, scriptedApplication } from '../support/application.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import { github } from '../support/deliveries.ts';
import { confined, type Confined } from './confined.ts';
import { objects, the } from './helm.ts';
import { builtImage, command, environment, instructions, setting } from './image.ts';

const MiB = 1024 ** 2;
const defaultLimit = 192 * MiB;

let folder = '';
before(async () => {
  folder = await builtImage();
});
after(() => rmSync(folder, { recursive: true }));

async function serving(upstream: string): Promise<Confined & { url: string; adminUrl: string }> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const config = {
    ...gatewayConfig(upstream, []),
    listen: { host: '127.0.0.1', port },
    admin: { host: '127.0.0.1', port: adminPort },
  };
  mkdirSync(join(folder, 'etc'), { recursive: true });
  for (const [name, text] of Object.entries({ ...secretFiles, 'config.yaml': stringify(config) }))
    writeFileSync(join(folder, 'etc', name), text);
  const env = { ...environment, HOOKONCE_CONFIG: join(folder, 'etc/config.yaml') };
  await using stack = new AsyncDisposableStack();
  const gateway = stack.use(confined(command, defaultLimit, { cwd: join(folder, 'app'), env }));
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  await until(systemClock, 'a gateway that is ready', async () => {
    if (!gateway.child.running()) throw new Error(gateway.child.lines.join('\n'));
    return (await exchange(`${adminUrl}/readyz`)).status === 200 ? true : undefined;
  });
  stack.move();
  return { ...gateway, url: `http://127.0.0.1:${port}`, adminUrl };
}

test('B97: as process 1, SIGTERM finishes the delivery in flight and ends with 0', async () => {
  await using application = await scriptedApplication();
  await using gateway = await serving(application.url);
  const work = held();
  application.script('B97', work.step);
  const reply = exchange(`${gateway.url}/github`, { method: 'POST', ...github('B97') });
  await work.arrived;

  const pid = gateway.pid();
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  assert.match(status, /^NSpid:\t\d+\t1$/m);
  assert.match(status, /^Uid:\t65532\t65532\t65532\t65532$/m);
  assert.match(status, /^CapEff:\t0+$/m);
  assert.match(readFileSync(`/proc/${pid}/mounts`, 'utf8'), /^\S+ \/ \S+ ro,/m);

  const startedMs = systemClock.now();
  process.kill(pid, 'SIGTERM');
  await until(systemClock, 'a gateway that drains', async () => {
    const ready = await exchange(`${gateway.adminUrl}/readyz`).catch(() => undefined);
    return ready?.status === 200 ? undefined : true;
  });
  work.finish();
  assert.equal((await reply).status, 200);
  assert.deepEqual(await gateway.child.exited, { code: 0, signal: null });
  assert.ok(
    gateway.child.lines.some((line) => line.includes('shutdown complete')),
    gateway.child.lines.join('\n'),
  );
  assert.ok(systemClock.now() - startedMs < 5000);
  const peak = gateway.peak();
  assert.ok(peak < defaultLimit, `${peak} bytes`);
});

test('the heap is bounded by the container, not by the machine', async () => {
  await using child = confined([process.execPath, '-p', 'v8.getHeapStatistics().heap_size_limit'], 128 * MiB, {
    cwd: '/',
    env: environment,
  });
  const { code } = await child.child.exited;
  assert.equal(code, 0, child.child.lines.join('\n'));
  assert.ok(Number(child.child.lines[0]) < 80 * MiB, child.child.lines.join());
});

test('the image starts Node itself, as nobody in particular, and holds the program alone', async () => {
  assert.match(setting('FROM'), /BASE/);
  assert.match(
    readFileSync(join(root, 'Dockerfile'), 'utf8'),
    /^ARG BASE=gcr\.io\/distroless\/nodejs26-debian\d+:nonroot$/m,
  );
  assert.deepEqual(command.slice(1), ['main.js', 'serve']);
  assert.equal(setting('STOPSIGNAL'), 'SIGTERM');
  assert.deepEqual(
    instructions.filter(({ name }) => ['ENTRYPOINT', 'HEALTHCHECK', 'RUN', 'ADD'].includes(name)),
    [],
  );
  // As the charts demand it.
  const { runAsUser, runAsGroup } = the('Deployment', await objects({ file: 'newcomer-values.yaml' })).spec.template
    .spec.containers[0].securityContext;
  assert.equal(setting('USER'), `${runAsUser}:${runAsGroup}`);
  assert.match(readFileSync(join(root, '.dockerignore'), 'utf8'), /^\*\n(![\w.-]+\n)+$/);
});
