/** Versions that come in any order, over several gateways, with failures and retries: what the application has last is the highest. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { until } from '../../src/demo/until.ts';
import type { ScriptedApplication } from '../support/application.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { routes } from '../support/config.ts';
import { custom, outcome } from '../support/deliveries.ts';
import { onNode } from '../support/keys.ts';
import { startLedgerCluster } from '../support/ledger-cluster.ts';

const full = process.env['HOOKONCE_TEST_FULL'] === '1';
const ordering = { resource: { json: '/order' }, version: { json: '/version', type: 'number' } };
const inOrder = (more: object = {}) => ({
  routes: routes.map((route) =>
    route['name'] === 'custom'
      ? { ...route, ordering: { ...ordering, ...more }, inFlight: { policy: 'wait', wait: '4s' } }
      : route,
  ),
});

interface Event {
  readonly id: string;
  readonly order: string;
  readonly version: number;
}

const deliver = async (cluster: Cluster, event: Event, n: number) =>
  await cluster.post(n, '/custom/x', custom(JSON.stringify(event)));

async function taken(cluster: Cluster, event: Event): Promise<void> {
  let tries = Math.floor(clock.random() * 4);
  const send = async () => await deliver(cluster, event, (tries += 1));
  assert.ok((await deliverUntilDone(clock, send, { retryAfterScale: 0.1, maxTries: 300 })).ok, event.id);
}

/** Takes what it is given unless it fails, every fifth time; `last`: the version it took last, by resource. */
function applying(application: ScriptedApplication): Map<string, number> {
  const last = new Map<string, number>();
  let visits = 0;
  application.otherwise(({ body }) => {
    visits += 1;
    if (visits % 5 === 0) return { status: 500 };
    const { order, version } = JSON.parse(new TextDecoder().decode(body)) as Event;
    last.set(order, version);
    return { status: 200 };
  });
  return last;
}

/** All versions of all resources, in any order, as many at once as senders are. */
async function storm(cluster: Cluster, resources: number, versions: number, senders: number): Promise<void> {
  const events = Array.from({ length: resources * versions }, (_, n): Event => {
    const [order, version] = [`order-${Math.floor(n / versions)}`, 1 + (n % versions)];
    return { id: `${order}-${version}`, order, version };
  });
  const shuffled = events
    .map((event) => ({ event, at: clock.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ event }) => event);
  const sender = async (): Promise<void> => {
    for (let event = shuffled.pop(); event; event = shuffled.pop()) await taken(cluster, event);
  };
  await Promise.all(Array.from({ length: senders }, sender));
}

suite('out of order', { concurrency: 2 }, () => {
  test('1,000 resources with shuffled versions over four gateways with retries: the last applied is the highest', async () => {
    const resources = full ? 1_000 : 150;
    await using cluster = await startCluster({ gateways: 4, settings: inOrder() });
    const last = applying(cluster.application);
    await storm(cluster, resources, 5, 32);
    assert.equal(last.size, resources);
    for (const [order, version] of last) assert.equal(version, 5, order);
    assert.ok((await cluster.metric('hookonce_out_of_order_total', { verdict: 'dropped' })) > 0);
    assert.ok((await cluster.metric('hookonce_deliveries_total', { outcome: 'stale' })) > 0);
  });

  test('all versions of one resource at the same time over four gateways: one at a time, the highest last', async () => {
    await using cluster = await startCluster({ gateways: 4, settings: inOrder() });
    const last = applying(cluster.application);
    await storm(cluster, 2, 20, 40);
    assert.deepEqual([...last.values()], [20, 20]);
  });

  test('a node is killed while versions come, and starts again with nothing: the highest is last all the same', async () => {
    const claims = { lockTtl: '2s', budget: '600ms', relyOnWatchdog: true };
    await using cluster = await startCluster({ gateways: 2, settings: { ...inOrder(), claims } });
    const last = applying(cluster.application);
    const running = storm(cluster, 60, 5, 16);
    await until(clock, 'some of them to be applied', () => (last.size > 15 ? true : undefined));
    await cluster.nodes[0]!.kill();
    await until(clock, 'more of them to be applied', () => (last.size > 25 ? true : undefined));
    await cluster.nodes[0]!.start();
    await running;
    assert.equal(last.size, 60);
    for (const [order, version] of last) assert.equal(version, 5, order);
  });

  test('onStale: mark: everything is forwarded, and what is older says so', async () => {
    await using cluster = await startCluster({ settings: inOrder({ onStale: 'mark' }) });
    for (const [n, version] of [5, 3, 6, 4].entries())
      assert.equal((await deliver(cluster, { id: `v${version}`, order: 'A', version }, n)).status, 200);
    const marks = cluster.application.visits.map(({ headers }) => header(headers, 'hookonce-stale'));
    assert.deepEqual(marks, [undefined, 'true', undefined, 'true']);
  });

  test('a node that forgets its versions is taught them by the others before it counts', async () => {
    const claims = { lockTtl: '1s', budget: '300ms', relyOnWatchdog: true };
    await using cluster = await startCluster({ settings: { ...inOrder(), claims } });
    for (let n = 0; n < 5; n += 1)
      assert.equal((await deliver(cluster, { id: `n${n}`, order: `${n}`, version: 9 }, n)).status, 200);
    for (const node of cluster.nodes) {
      await node.kill();
      await node.start();
      await until(clock, 'it to count again', async () => {
        const held = await cluster.metric('hookonce_voter_state', { state: 'up' });
        return held === cluster.nodes.length * cluster.gateways.length ? true : undefined;
      });
    }
    for (let n = 0; n < 5; n += 1) {
      const reply = await deliver(cluster, { id: `o${n}`, order: `${n}`, version: 8 }, n);
      assert.deepEqual([reply.status, outcome(reply)], [200, 'stale']);
    }
  });

  test('with the ledger, versions survive that every node forgets', async () => {
    await using set = await startLedgerCluster({ nodes: 1, settings: inOrder() });
    const { cluster } = set;
    assert.equal((await deliver(cluster, { id: 'new', order: 'A', version: 9 }, 0)).status, 200);
    await onNode(cluster.nodes[0]!, async (redis) => await redis.flushall());
    await taken(cluster, { id: 'other', order: 'B', version: 1 });
    const send = async () => await deliver(cluster, { id: 'old', order: 'A', version: 8 }, 1);
    const { replies } = await deliverUntilDone(clock, send, { retryAfterScale: 0.2, maxTries: 200 });
    assert.equal(outcome(replies.at(-1)!), 'stale');
    assert.equal(cluster.application.visits.length, 2);
  });

  test('with no Redis at all, the ledger keeps the order', async () => {
    await using set = await startLedgerCluster({ nodes: 0, gateways: 4, settings: inOrder() });
    const last = applying(set.cluster.application);
    await storm(set.cluster, 10, 5, 16);
    assert.deepEqual(new Set(last.values()), new Set([5]));
  });

  test('while PostgreSQL is down, the order is kept by quorum, and caught up', async () => {
    await using set = await startLedgerCluster({ settings: inOrder() });
    const { cluster, postgres } = set;
    await postgres.stop();
    assert.equal((await deliver(cluster, { id: 'new', order: 'A', version: 9 }, 0)).status, 200);
    assert.equal(outcome(await deliver(cluster, { id: 'old', order: 'A', version: 8 }, 1)), 'stale');
    await postgres.start();
    await set.ledgers(true);
    await set.caughtUp();
    const rows = await postgres.query("select 1 from hookonce_versions where applied <> ''");
    assert.equal(rows.length, 1);
  });
});
