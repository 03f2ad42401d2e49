/** The tests' own tools: a tool that is blind would let everything pass. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.ts';
import { startChild } from '../../src/demo/child.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { answer, held, reset, scriptedApplication } from '../support/application.ts';
import { sum } from '../support/metrics.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

function client(url: string): Redis & AsyncDisposable {
  const redis = new Redis(url, { commandTimeout: 200, maxRetriesPerRequest: 0, retryStrategy: () => 20 });
  redis.on('error', () => {});
  return Object.assign(redis, { [Symbol.asyncDispose]: async () => redis.disconnect() });
}

test('a Redis can be frozen, thawed, killed and started with what it kept', async () => {
  await using node = await startRedisServer({ appendonly: 'always' });
  await using redis = client(node.url);
  await redis.set('kept', '1');
  node.freeze();
  await assert.rejects(redis.get('kept'));
  node.thaw();
  assert.equal(await redis.get('kept'), '1');
  const { pid } = node;
  await node.kill();
  await assert.rejects(redis.get('kept'));
  await node.start();
  assert.notEqual(node.pid, pid);
  await using again = client(node.url);
  assert.equal(await again.get('kept'), '1');
});

test('a Redis without an append-only file forgets', async () => {
  await using node = await startRedisServer();
  await using redis = client(node.url);
  await redis.set('gone', '1');
  await node.kill();
  await node.start();
  await using again = client(node.url);
  assert.equal(await again.get('gone'), null);
});

test('the proxy stalls, delays, loses answers and cuts', async () => {
  await using node = await startRedisServer();
  await using proxy = await startTcpProxy(systemClock, node.port);
  await using redis = client(proxy.url);
  assert.equal(await redis.incr('n'), 1);
  proxy.stall();
  await assert.rejects(redis.incr('n'));
  proxy.heal();
  assert.equal(await redis.incr('n'), 3, 'what was on its way arrived');
  proxy.delay(50);
  const startedMs = systemClock.now();
  assert.equal(await redis.incr('n'), 4);
  assert.ok(systemClock.now() - startedMs >= 49);
  proxy.loseReplies();
  await assert.rejects(redis.incr('n'));
  proxy.cut();
  await assert.rejects(redis.incr('n'));
  proxy.heal();
  await using direct = client(node.url);
  assert.equal(await direct.get('n'), '5', 'the request whose answer was lost was carried out');
});

test('the application plays its script, sees what is beside what, and can go away', async () => {
  await using application = await scriptedApplication();
  const visit = (id: string) =>
    exchange(`${application.url}/x`, {
      method: 'POST',
      headers: ['Hookonce-Key', id],
      body: Buffer.from(`{"id":"${id}"}`),
    });
  const work = held();
  application.script('a', work.step, answer(503));
  const first = visit('a');
  await work.arrived;
  assert.equal((await visit('a')).status, 503);
  work.finish({ status: 201 });
  assert.equal((await first).status, 201);
  assert.deepEqual(
    application.of('a').map(({ beside }) => beside),
    [0, 1],
  );

  application.script('b', reset);
  await assert.rejects(visit('b'), { code: 'ECONNRESET' });
  application.closeBeforeReading(1);
  await assert.rejects(visit('c'));
  assert.equal(application.of('c').length, 0);
  await application.down();
  await assert.rejects(visit('c'), { code: 'ECONNREFUSED' });
  await application.up();
  assert.equal((await visit('c')).status, 200);
});

test('samples are summed by name and labels', () => {
  const page = '# HELP a_total x\na_total{x="1",y="2"} 3\na_total{x="1",y="3"} 4\na_total_more 9\nb 5\n';
  assert.equal(sum([page, page], 'a_total', { x: '1' }), 14);
  assert.equal(sum([page], 'a_total', { y: '3' }), 4);
  assert.equal(sum([page], 'b'), 5);
  assert.equal(sum([page], 'c'), 0);
});

test('a child that cannot be started, or ends early, says why', async () => {
  await using missing = startChild('/nonexistent/program', []);
  assert.notEqual((await missing.exited).code, 0);
  await using short = startChild(process.execPath, ['-e', 'console.log("bye"); process.exit(3)']);
  await assert.rejects(short.line(/never/), /bye/);
  assert.deepEqual(await short.exited, { code: 3, signal: null });
});
