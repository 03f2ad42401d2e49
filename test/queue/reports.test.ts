/** Public reports about queues, retries and dead letters, each on real parts. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock as clock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held } from '../support/application.ts';
import { drained, eager, queueUp, startAsyncCluster, type AsyncCluster } from '../support/async.ts';
import { commandLine } from '../support/command-line.ts';
import { secrets, shortLock } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';
import { sum } from '../support/metrics.ts';

const oneGateway = { nodes: 1, gateways: 1 } as const;
const admin = { token: { file: './admin.secret' } };

async function command(server: { readonly port: number }, ...words: [string, ...string[]]): Promise<unknown> {
  const redis = new Redis({ host: '127.0.0.1', port: server.port });
  try {
    return await redis.call(...words);
  } finally {
    redis.disconnect();
  }
}

async function visits(cluster: AsyncCluster, id: string, count: number): Promise<void> {
  await until(clock, `${count} visits of ${id}`, async () =>
    cluster.application.of(id).length >= count ? true : undefined,
  );
}

async function dead(cluster: AsyncCluster, count: number): Promise<void> {
  await until(clock, `${count} dead letters`, async () => ((await cluster.depth('dead')) === count ? true : undefined));
}

suite('B103: a worker that falls silent', () => {
  test('after the application has answered: the job is found done, and ends once', async () => {
    await using cluster = await startAsyncCluster({ nodes: 1, gateways: 2, settings: { claims: shortLock } });
    const work = held();
    cluster.application.script('evt_19', work.step);
    // The first gateway alone takes jobs at first.
    const [first, second] = cluster.gateways;
    second!.child.signal('SIGSTOP');
    assert.equal((await cluster.post(0, '/github', github('evt_19'))).status, 202);
    await work.arrived;
    work.finish();
    await until(clock, 'the end of the job', async () =>
      sum([await first!.metrics()], 'hookonce_queue_attempts_total', { result: 'delivered' }) === 1 ? true : undefined,
    );
    first!.child.signal('SIGSTOP');
    second!.child.signal('SIGCONT');
    await clock.sleep(3000);
    first!.child.signal('SIGCONT');
    await drained(cluster);
    assert.equal(cluster.application.of('evt_19').length, 1);
  });

  test('before the answer: one more attempt, marked as such, and the stall is counted', async () => {
    await using cluster = await startAsyncCluster({ nodes: 1, gateways: 2, settings: { claims: shortLock } });
    const work = held();
    cluster.application.script('evt_19', work.step);
    cluster.gateways[1]!.child.signal('SIGSTOP');
    await cluster.post(0, '/github', github('evt_19'));
    await work.arrived;
    cluster.gateways[0]!.child.signal('SIGSTOP');
    cluster.gateways[1]!.child.signal('SIGCONT');
    await visits(cluster, 'evt_19', 2);
    work.finish();
    cluster.gateways[0]!.child.signal('SIGCONT');
    await drained(cluster);
    assert.deepEqual(
      cluster.application.of('evt_19').map(({ attempt }) => attempt),
      [1, 2],
    );
    assert.equal(await cluster.metric('hookonce_queue_stalled_total'), 1);
    assert.equal(await cluster.depth('dead'), 0);
  });
});

test('B104: an event that has died, and is delivered again: it says so, and never 202 with nothing queued', async () => {
  await using cluster = await startAsyncCluster({
    ...oneGateway,
    queue: { attempts: 2, backoff: { first: '20ms', max: '20ms' } },
    settings: { admin },
  });
  cluster.application.otherwise(answer(500));
  assert.equal((await cluster.post(0, '/github', github('evt_20'))).status, 202);
  await dead(cluster, 1);
  const again = await cluster.post(0, '/github', github('evt_20'));
  assert.deepEqual([again.status, outcome(again)], [200, 'duplicate'], 'it is kept, as a dead letter');
  cluster.application.otherwise(answer(200));

  const [gateway] = cluster.gateways;
  const headers = ['Authorization', `Bearer ${secrets.admin}`];
  const ask = async (method: string, path: string) => {
    const { status, body } = await exchange(gateway!.adminUrl + path, { method, headers });
    return { status, body: JSON.parse(body.toString()) as Record<string, unknown> };
  };
  const { body } = await ask('GET', '/-/dlq');
  const [{ id }] = body['letters'] as [{ id: string }];
  assert.deepEqual((await ask('POST', `/-/dlq/${id}/replay`)).body['result'], 'replayed');
  await visits(cluster, 'evt_20', 3);
  await drained(cluster);
  const twice = await ask('POST', `/-/dlq/${id}/replay`);
  assert.deepEqual([twice.status, twice.body['result']], [404, 'gone']);

  // Forgotten, it is an event like any other, and queued again.
  assert.equal((await ask('POST', '/-/forget/github?id=evt_20')).status, 200);
  assert.equal((await cluster.post(0, '/github', github('evt_20'))).status, 202);
  await visits(cluster, 'evt_20', 4);
});

test('B106: workers go on after the queue was away, and after their connections were cut', async () => {
  await using cluster = await startAsyncCluster({ ...oneGateway, queue: eager });
  const store = cluster.store as RedisServer;
  await cluster.application.down();
  for (const n of [1, 2, 3, 4, 5]) assert.equal((await cluster.post(0, '/github', github(`B106-${n}`))).status, 202);
  await store.kill();
  await clock.sleep(1500);
  await cluster.application.up();
  await store.start();
  const backMs = clock.now();
  await queueUp(cluster.gateways[0]!);
  for (const n of [6, 7, 8, 9, 10]) {
    await until(clock, 'a 202', async () =>
      (await cluster.post(0, '/github', github(`B106-${n}`))).status === 202 ? true : undefined,
    );
  }
  await until(clock, 'all ten', async () => (cluster.application.visits.length >= 10 ? true : undefined), 15_000);
  assert.ok(clock.now() - backMs < 15_000, `${clock.now() - backMs} ms`);
  await drained(cluster);

  await command(store, 'CLIENT', 'KILL', 'TYPE', 'normal');
  await until(clock, 'a 202', async () =>
    (await cluster.post(0, '/github', github('B106-11'))).status === 202 ? true : undefined,
  );
  await visits(cluster, 'B106-11', 1);
  await drained(cluster);
  await queueUp(cluster.gateways[0]!);
  assert.equal(await cluster.metric('hookonce_queue_oldest_seconds'), 0);
});

test('B107: a queue that may evict jobs is said, and does not count as durable', async () => {
  await using cluster = await startAsyncCluster(oneGateway);
  assert.equal(await cluster.metric('hookonce_queue_durable'), 1);
  await using lossy = await startRedisServer({ appendonly: 'always', args: ['--maxmemory-policy', 'allkeys-lru'] });
  const { config } = cluster;
  const gateway = await cluster.gateway({ ...settingsOf(config), top: { queue: { url: lossy.url } } });
  await gateway.child.line(/maxmemory-policy is allkeys-lru/);
  assert.equal(sum([await gateway.metrics()], 'hookonce_queue_durable'), 0);
});

test('B108: a server that may not be asked: one line, and async mode works', async () => {
  await using cluster = await startAsyncCluster(oneGateway);
  await using shy = await startRedisServer({ appendonly: 'always' });
  await command(shy, 'ACL', 'SETUSER', 'default', '-config', '-info');
  const gateway = await cluster.gateway({ ...settingsOf(cluster.config), top: { queue: { url: shy.url } } });
  await queueUp(gateway);
  await gateway.child.line(/may not be asked/);
  const { status } = await exchange(`${gateway.url}/github`, { method: 'POST', ...github('B108') });
  assert.equal(status, 202);
  await visits(cluster, 'B108', 1);
  await clock.sleep(2500);
  assert.equal(gateway.child.lines.filter((line) => line.includes('may not be asked')).length, 1);
});

test('B109: what is done leaves nothing behind, and dead letters stay', async () => {
  await using cluster = await startAsyncCluster({
    ...oneGateway,
    queue: { attempts: 1, concurrency: 64 },
    settings: { upstream: { maxInFlight: 128 } },
  });
  const size = async () => Number(await command(cluster.store, 'DBSIZE'));
  const deliver = async (name: string, count: number): Promise<void> => {
    const ids = Array.from({ length: count }, (_, n) => `${name}-${n}`).values();
    const body = JSON.stringify({ text: 'x'.repeat(4000) });
    const lane = async (): Promise<void> => {
      for (const id of ids) assert.equal((await cluster.post(0, '/github', github(id, body))).status, 202);
    };
    await Promise.all(Array.from({ length: 16 }, lane));
    await until(clock, 'an empty queue', async () =>
      (await command(cluster.store, 'LLEN', 'hoq:tests:wait')) === 0 &&
      (await command(cluster.store, 'LLEN', 'hoq:tests:active')) === 0
        ? true
        : undefined,
    );
  };
  await deliver('warm', 50);
  const before = await size();
  await deliver('good', process.env['HOOKONCE_TEST_FULL'] === '1' ? 20_000 : 400);
  assert.ok((await size()) <= before + 2, `${await size()} keys, ${before} before`);
  cluster.application.otherwise(answer(500));
  await deliver('bad', 40);
  await dead(cluster, 40);
  cluster.application.otherwise(answer(200));
  await deliver('better', 100);
  assert.equal(await cluster.depth('dead'), 40);
});

test('B113: three attempts with growing gaps, a dead letter that is whole and counted; replayed with identical bytes', async () => {
  await using cluster = await startAsyncCluster({
    ...oneGateway,
    queue: { attempts: 3, backoff: { first: '300ms', max: '1m' } },
    settings: { admin, redis: { timeout: '1s' }, claims: { budget: '3s', lockTtl: '30s' } },
  });
  await using run = await commandLine(cluster.config);
  const arrivals: number[] = [];
  cluster.application.otherwise(() => {
    arrivals.push(clock.now());
    return { status: 502, body: 'broken\n' };
  });
  const message = github('evt_23', Buffer.from([0, 1, 2, 255, 13, 10]));
  assert.equal((await cluster.post(0, '/github?a=b', message)).status, 202);
  await dead(cluster, 1);
  assert.equal(arrivals.length, 3);
  assert.ok(arrivals[2]! - arrivals[1]! > arrivals[1]! - arrivals[0]!, 'the gaps grow');
  assert.equal(await cluster.metric('hookonce_queue_attempts_total', { result: 'failed' }), 2);
  assert.equal(await cluster.metric('hookonce_queue_attempts_total', { result: 'dead' }), 1);

  const list = JSON.parse((await run('dlq', 'list', '--json')).text) as { letters: { id: string; attempts: number }[] };
  const [letter] = list.letters;
  assert.equal(letter!.attempts, 3);
  const shown = JSON.parse((await run('dlq', 'show', letter!.id, '--json')).text) as Record<string, unknown>;
  assert.equal(shown['lastError'], 'answered 502');
  assert.equal(shown['target'], '/github?a=b');
  const headers = shown['headers'] as string[];
  assert.equal(header(headers, 'x-hub-signature-256'), header(message.headers, 'x-hub-signature-256'));
  assert.deepEqual(
    (shown['history'] as { attempt: number; status: number }[]).map(({ attempt, status }) => [attempt, status]),
    [
      [1, 502],
      [2, 502],
      [3, 502],
    ],
  );
  cluster.application.otherwise(answer(200));
  assert.equal((await run('dlq', 'replay', letter!.id)).code, 0);
  await visits(cluster, 'evt_23', 4);
  const replayed = cluster.application.of('evt_23').at(-1)!;
  assert.deepEqual(Buffer.from(replayed.body), message.body);
  assert.equal(header(replayed.headers, 'x-hub-signature-256'), header(message.headers, 'x-hub-signature-256'));
  await dead(cluster, 0);
});

/** The routes of a configuration, for a gateway with another queue. */
function settingsOf(config: Readonly<Record<string, unknown>>) {
  return { routes: config['routes'] as Readonly<Record<string, unknown>>[] };
}
