/** The queue of the release's own, run for real: its settings, its access list, and a queue on it. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { parse } from 'yaml';
import { systemClock as clock } from '../../src/clock.ts';
import { startChild } from '../../src/demo/child.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { until } from '../../src/demo/until.ts';
import { record, sample } from '../queue/queue-suite.ts';
import { openQueue, redisTarget } from '../support/queues.ts';
import { configFile, objects, the } from './helm.ts';

const values = { redis: { server: 'redis-server', cli: 'redis-cli' } };

test('it keeps what it acknowledges, and gateways may do all that they need, and no more', async () => {
  await using stack = new AsyncDisposableStack();
  const rendered = await objects({ file: 'gateway-queue-values.yaml', values });
  const settings = rendered.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-queue'))!;
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-chart-queue-'));
  stack.defer(async () => await rm(dir, { recursive: true }));
  const port = await freePort();
  const here = (text: string): string =>
    text
      .replaceAll('/etc/hookonce-queue', dir)
      .replaceAll('/run/hookonce-queue', dir)
      .replace('dir /data', `dir ${dir}`)
      .replace('port 6379', `port ${port}`);
  const { data } = settings as { data: Record<string, string> };
  for (const [name, text] of Object.entries(data)) await writeFile(join(dir, name), here(text));
  await writeFile(join(dir, 'start.sh'), here(data['start.sh']!).replace(`${dir}/auth/password`, `${dir}/password`));
  await writeFile(join(dir, 'password'), 'a password\n');
  const server = stack.use(startChild('sh', [join(dir, 'start.sh')]));
  await server.line(/Ready to accept connections/);

  const target = { ...redisTarget(port), username: 'hookonce', password: 'a password' };
  const end = stack.use(await openQueue(target));
  await end.events.until(() => end.events.of('queueDurable').at(-1));
  assert.deepEqual(end.events.of('queueDurable'), [[true, '']]);
  let tries = 0;
  end.queue.work(async ({ attempt }) => {
    tries += 1;
    if (tries === 1) return { kind: 'wait', ms: 10 };
    if (tries === 2) return { kind: 'retry', ms: 10, attempt: record(attempt) };
    return tries === 3 ? { kind: 'dead', attempt: record(attempt) } : { kind: 'done' };
  });
  assert.equal(await end.queue.enqueue(sample()), 'queued');
  const [id] = await until(clock, 'a dead letter', async () => {
    const ids = await end.deadLetters.ids();
    return ids.length > 0 ? ids : undefined;
  });
  assert.equal((await end.deadLetters.get(id!))!.history.length, 2);
  assert.equal(await end.deadLetters.replay(id!, ''), 'replayed');
  await until(clock, 'the replay', async () => (tries === 4 ? true : undefined));

  const gateway = stack.adopt(
    new Redis({ host: '127.0.0.1', port, username: 'hookonce', password: 'a password' }),
    (redis) => redis.disconnect(),
  );
  for (const [command, ...args] of [
    ['FLUSHALL'],
    ['CONFIG', 'SET', 'appendonly', 'no'],
    ['SHUTDOWN'],
    ['GET', 'ho:{0}:boot'],
    ['ACL', 'LIST'],
  ] as const)
    await assert.rejects(gateway.call(command, ...args), /NOPERM/, command);
});

test('gateways are told where it is; with one of yours, where that is', async () => {
  const own = parse(configFile(await objects({ file: 'gateway-queue-values.yaml' }))) as { queue: object };
  assert.deepEqual(own.queue, {
    ...{ attempts: 30, concurrency: 8, page: true },
    url: 'redis://orders-hookonce-queue.payments.svc:6379',
    ...{ username: 'hookonce', password: { file: '/etc/hookonce/secrets/queue-password' } },
  });
  const rendered = await objects({ file: 'gateway-own-redis-values.yaml' });
  const { queue } = parse(configFile(rendered)) as { queue: object };
  assert.deepEqual(queue, { url: { file: '/etc/hookonce/secrets/queue-url' } });
  assert.ok(!rendered.some(({ metadata }) => metadata.name.endsWith('-queue')), 'none of the release');
  const { volumes } = the('Deployment', rendered).spec.template.spec as {
    volumes: { projected?: { sources: { secret: { name: string; items?: unknown } }[] } }[];
  };
  const sources = volumes.flatMap(({ projected }) => projected?.sources ?? []).map(({ secret }) => secret);
  assert.deepEqual(
    sources.find(({ name }) => name === 'orders-queue'),
    { name: 'orders-queue', items: [{ key: 'uri', path: 'queue-url' }] },
  );
});
