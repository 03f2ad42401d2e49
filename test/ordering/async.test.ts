/** Order, queue and ledger together: the worker keeps the order of what was accepted, and its ledger remembers it. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { systemClock as clock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held } from '../support/application.ts';
import { eager, startAsyncCluster, type AsyncCluster, type AsyncOptions } from '../support/async.ts';
import { routes, shortLock } from '../support/config.ts';
import { custom, outcome } from '../support/deliveries.ts';
import { onNode } from '../support/keys.ts';
import { startPostgres, type Postgres } from '../support/postgres.ts';

const ordering = { resource: { json: '/order' }, version: { json: '/version', type: 'number' } };
const ledger = { url: { file: './ledger.secret' }, timeout: '1s' };
const quickClaims = { ...shortLock, lockTtl: '4s', budget: '1300ms', recoverAfter: '1s' };

interface Event {
  readonly id: string;
  readonly order: string;
  readonly version: number;
}

const inOrder = (more: object = {}, route: object = {}) =>
  routes.map((each) => (each['name'] === 'custom' ? { ...each, ordering: { ...ordering, ...more }, ...route } : each));

/** With a ledger where there is a PostgreSQL. */
async function start(options: AsyncOptions, postgres?: Postgres, route: object = {}): Promise<AsyncCluster> {
  const { settings = {} } = options;
  return await startAsyncCluster({
    queue: eager,
    ...options,
    ...(postgres && { files: { 'ledger.secret': postgres.url } }),
    settings: {
      ...settings,
      routes: settings.routes ?? inOrder({}, route),
      ...(postgres && { top: { ledger } }),
      ...(postgres && { claims: { budget: '1300ms', ...settings.claims } }),
    },
  });
}

const post = async (cluster: AsyncCluster, event: Event, n = 0) =>
  await cluster.post(n, '/custom/x', custom(JSON.stringify(event)));

const tried = async (cluster: AsyncCluster, result: string, count: number): Promise<unknown> =>
  await until(clock, `${count} tries that are ${result}`, async () =>
    (await cluster.metric('hookonce_queue_attempts_total', { result })) >= count ? true : undefined,
  );

const dropped = async (cluster: AsyncCluster, count: number): Promise<unknown> =>
  await until(clock, `${count} that are dropped`, async () =>
    (await cluster.metric('hookonce_out_of_order_total', { verdict: 'dropped' })) === count ? true : undefined,
  );

const marks = (cluster: AsyncCluster, id: string): (string | undefined)[] =>
  cluster.application.of(id).map(({ headers }) => header(headers, 'hookonce-stale'));

/** All versions of all orders, shuffled, posted over all gateways. */
async function postAll(cluster: AsyncCluster, orders: number, versions: number): Promise<void> {
  const events = Array.from({ length: orders * versions }, (_, n) => ({
    event: { id: `e${n}`, order: `order-${n % orders}`, version: 1 + Math.floor(n / orders) },
    at: clock.random(),
  }));
  events.sort((a, b) => a.at - b.at);
  await Promise.all(events.map(async ({ event }, n) => assert.equal((await post(cluster, event, n)).status, 202)));
}

suite('async mode in order', { concurrency: 2 }, () => {
  for (const name of ['the voters alone', 'the ledger as well']) {
    test(`shuffled versions with failures, ${name}: one at a time, the last applied is the highest, and nobody waits for a lock to run out`, async () => {
      await using postgres = name === 'the voters alone' ? undefined : await startPostgres();
      await using cluster = await start({ gateways: 2 }, postgres);
      const last = new Map<string, number>();
      const busy = new Set<string>();
      const taken: string[] = [];
      let visits = 0;
      cluster.application.otherwise(async ({ body }) => {
        const { id, order, version } = JSON.parse(new TextDecoder().decode(body)) as Event;
        assert.ok(!busy.has(order), `two at a time of ${order}`);
        busy.add(order);
        visits += 1;
        const fails = visits % 5 === 0;
        await clock.sleep(20);
        busy.delete(order);
        if (fails) return { status: 500 };
        assert.ok(version > (last.get(order) ?? 0), `${order} goes back to ${version}`);
        last.set(order, version);
        taken.push(id);
        return { status: 200 };
      });
      const begunMs = clock.now();
      await postAll(cluster, 4, 12);
      const older = async () => await cluster.metric('hookonce_out_of_order_total', { verdict: 'dropped' });
      await until(clock, 'every event to be taken, or older', async () =>
        (await older()) + taken.length === 48 ? true : undefined,
      );
      assert.ok(clock.now() - begunMs < 15_000, `${clock.now() - begunMs} ms, with locks that live for 20 s`);
      assert.deepEqual([...last.values()], [12, 12, 12, 12]);
      assert.equal(new Set(taken).size, taken.length, 'once each');
    });
  }

  test('onStale: mark: the worker says what is older, and what may be', async () => {
    const claims = { ...shortLock, unknownHold: '1s' };
    await using cluster = await start({
      ...{ gateways: 1, nodes: 1 },
      settings: { routes: inOrder({ onStale: 'mark' }), claims, upstream: { timeout: '300ms' } },
    });
    const { application } = cluster;
    await post(cluster, { id: 'five', order: 'A', version: 5 });
    await tried(cluster, 'delivered', 1);
    await post(cluster, { id: 'four', order: 'A', version: 4 });
    await tried(cluster, 'delivered', 2);
    assert.deepEqual([marks(cluster, 'five'), marks(cluster, 'four')], [[undefined], ['true']]);
    // The application falls silent over the ninth, and is not asked about it again for now.
    const silent = held();
    application.script('nine', silent.step, answer(503, { headers: ['Retry-After', '60'] }));
    await post(cluster, { id: 'nine', order: 'A', version: 9 });
    await tried(cluster, 'failed', 1);
    await post(cluster, { id: 'eight', order: 'A', version: 8 });
    await tried(cluster, 'delivered', 3);
    assert.deepEqual(marks(cluster, 'eight'), ['maybe']);
    silent.finish();
  });

  test('a body with a content coding is in order, too', async () => {
    await using cluster = await start({ gateways: 1, nodes: 1 });
    const zipped = async (event: Event) => {
      const { headers, body } = custom(gzipSync(JSON.stringify(event)));
      return await cluster.post(0, '/custom/x', { headers: [...headers, 'Content-Encoding', 'gzip'], body });
    };
    assert.equal((await zipped({ id: 'two', order: 'A', version: 2 })).status, 202);
    await tried(cluster, 'delivered', 1);
    assert.equal((await zipped({ id: 'one', order: 'A', version: 1 })).status, 202);
    await dropped(cluster, 1);
    assert.equal(cluster.application.visits.length, 1);
    assert.equal(header(cluster.application.visits[0]!.headers, 'hookonce-stale'), undefined);
  });

  test('with the ledger: all nodes forget, and what is older is still older, what was done is a duplicate', async () => {
    await using postgres = await startPostgres();
    await using cluster = await start({ gateways: 1, nodes: 1, settings: { claims: quickClaims } }, postgres);
    const newer = { id: 'newer', order: 'A', version: 9 };
    assert.equal((await post(cluster, newer)).status, 202);
    await tried(cluster, 'delivered', 1);
    await cluster.gateways[0]!.restart();
    await onNode(cluster.nodes[0]!, async (redis) => await redis.flushall());
    const accepted = async (event: Event): Promise<void> => {
      const send = async () => await post(cluster, event);
      const { replies } = await deliverUntilDone(clock, send, { retryAfterScale: 0.2, maxTries: 200 });
      assert.equal(outcome(replies.at(-1)!), 'accepted');
    };
    await accepted(newer);
    await accepted({ id: 'older', order: 'A', version: 8 });
    await tried(cluster, 'duplicate', 1);
    await dropped(cluster, 1);
    assert.equal(cluster.application.visits.length, 1);
  });

  test('with onUnavailable: ledger and no node: accepted, worked on once each, and in order', async () => {
    await using postgres = await startPostgres();
    await using cluster = await start({ gateways: 2, settings: { claims: quickClaims } }, postgres, {
      onUnavailable: 'ledger',
    });
    for (const node of cluster.nodes) await node.kill();
    assert.equal((await post(cluster, { id: 'new', order: 'A', version: 9 })).status, 202);
    await tried(cluster, 'delivered', 1);
    assert.equal((await post(cluster, { id: 'new', order: 'A', version: 9 }, 1)).status, 200, 'a copy');
    assert.equal((await post(cluster, { id: 'old', order: 'A', version: 8 }, 1)).status, 202);
    await dropped(cluster, 1);
    assert.deepEqual([cluster.application.of('new').length, cluster.application.of('old').length], [1, 0]);
  });
});
