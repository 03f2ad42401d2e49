/** A queue that is silent, or not there at all: what waits for it, and for how long. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { startGateway } from '../../src/demo/gateway.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { held, scriptedApplication } from '../support/application.ts';
import { drained, queueUp, startAsyncCluster } from '../support/async.ts';
import { gatewayConfig, routes, secretFiles } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';
import { program } from '../support/program.ts';
import { redisTarget, openQueue } from '../support/queues.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { sample } from '../queue/queue-suite.ts';

const asyncRoutes = routes.map((route) => ({ ...route, mode: 'async' }));

test('frozen: each delivery is refused within the deadline, and all is well once it answers again', async () => {
  await using cluster = await startAsyncCluster({ nodes: 1, gateways: 1, queue: { timeout: '300ms' } });
  const store = cluster.store as RedisServer;
  store.freeze();
  const begunMs = clock.now();
  const replies = await Promise.all(
    Array.from({ length: 20 }, async (_, n) => await cluster.post(0, '/github', github(`frozen-${n}`))),
  );
  assert.ok(replies.every((reply) => reply.status === 503 && outcome(reply) === 'unavailable'));
  assert.ok(clock.now() - begunMs < 5000, `${clock.now() - begunMs} ms`);
  store.thaw();
  for (let n = 0; n < 20; n += 1) {
    await until(clock, 'a delivery that is accepted', async () =>
      (await cluster.post(0, '/github', github(`frozen-${n}`))).status < 300 ? true : undefined,
    );
  }
  await until(clock, 'all of them', async () =>
    Array.from({ length: 20 }, (_, n) => cluster.application.of(`frozen-${n}`)).every((visits) => visits.length === 1)
      ? true
      : undefined,
  );
  await drained(cluster);
  // Those that were put in before it froze, and once more afterwards, ended as duplicates.
  assert.equal(cluster.application.visits.length, 20);
  assert.equal(await cluster.depth('dead'), 0);
});

test('what came too late, having waited for its turn, takes nobody else along: the connection stays', async () => {
  await using server = await startRedisServer({ appendonly: 'always' });
  await using proxy = await startTcpProxy(clock, server.port);
  await using one = await openQueue(redisTarget(proxy.port), { timeoutMs: 2000 });
  assert.equal(await one.queue.enqueue(sample()), 'queued');
  proxy.delay(560);
  // Each takes all that may be written at the same time.
  const large = Array.from(
    { length: 6 },
    async () => await one.queue.enqueue(sample({ body: Buffer.alloc(5_000_000) })),
  );
  const became = await Promise.all(large);
  assert.ok(became.includes('failed'), became.join());
  proxy.heal();
  assert.equal(await one.queue.enqueue(sample()), 'queued');
});

suite('a gateway without its queue', () => {
  test('starts, answers 503 on async routes, and takes the queue up when it comes', async () => {
    await using stack = new AsyncDisposableStack();
    const application = stack.use(await scriptedApplication());
    const port = await freePort();
    const top = { queue: { url: `redis://127.0.0.1:${port}` } };
    const config = gatewayConfig(application.url, [], { routes: asyncRoutes, top });
    const gateway = stack.use(await startGateway(program, clock, { config, files: secretFiles }));
    const post = async () => await exchange(`${gateway.url}/github`, { method: 'POST', ...github('early') });
    const refused = await post();
    assert.deepEqual([refused.status, outcome(refused)], [503, 'unavailable']);
    stack.use(await startRedisServer({ appendonly: 'always', args: ['--port', String(port)] }));
    await queueUp(gateway);
    assert.equal((await post()).status, 202);
    await until(clock, 'the forward', async () => (application.of('early').length === 1 ? true : undefined));
  });

  test('ends in time', async () => {
    await using cluster = await startAsyncCluster({ nodes: 1, gateways: 1 });
    assert.equal((await cluster.post(0, '/github', github('before'))).status, 202);
    await drained(cluster);
    await cluster.store.kill();
    const begunMs = clock.now();
    const { code } = await cluster.gateways[0]!.terminate();
    assert.equal(code, 0);
    assert.ok(clock.now() - begunMs < 15_000, `${clock.now() - begunMs} ms`);
  });
});

test('SIGTERM in the middle of a job: it is ended, no other is begun, and what is left goes to another gateway', async () => {
  await using cluster = await startAsyncCluster({ nodes: 1, gateways: 1, queue: { concurrency: 1 } });
  const work = held();
  cluster.application.script('first', work.step);
  assert.equal((await cluster.post(0, '/github', github('first'))).status, 202);
  await work.arrived;
  assert.equal((await cluster.post(0, '/github', github('second'))).status, 202);
  const ended = cluster.gateways[0]!.terminate();
  await clock.sleep(300);
  work.finish();
  assert.equal((await ended).code, 0);
  assert.deepEqual(
    cluster.application.visits.map(({ attempt, status }) => [attempt, status]),
    [[1, 200]],
  );
  const another = await cluster.gateway({
    routes: asyncRoutes,
    top: { queue: { url: (cluster.store as RedisServer).url } },
  });
  await queueUp(another);
  await until(clock, 'the second event', async () =>
    cluster.application.of('second').length === 1 ? true : undefined,
  );
  assert.equal(cluster.application.of('first').length, 1);
});

test('a job that another version has written waits for that version', async () => {
  await using server = await startRedisServer({ appendonly: 'always' });
  await using end = await openQueue(redisTarget(server.port));
  await end.queue.bull!.add('github', { form: 2 } as never, { attempts: 1_000_000, backoff: { type: 'ours' } });
  const seen: string[] = [];
  end.queue.work(async (job) => {
    seen.push(job.delivery.target);
    return { kind: 'done' };
  });
  await end.queue.enqueue(sample());
  await until(clock, 'the other job', async () => (seen.length === 1 ? true : undefined));
  await until(clock, 'a job that waits', async () =>
    (await end.queue.bull!.getDelayedCount()) === 1 ? true : undefined,
  );
  assert.deepEqual(await end.deadLetters.ids(), []);
});
