/** What every 202 has promised holds through outages: of the queue, of a gateway, of the application. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { until } from '../../src/demo/until.ts';
import { answer } from '../support/application.ts';
import { drained, eager, queueUp, startAsyncCluster, type AsyncCluster, type Store } from '../support/async.ts';
import { commandLine } from '../support/command-line.ts';
import { shortLock } from '../support/config.ts';
import type { Postgres } from '../support/postgres.ts';
import { github, outcome, retryAfter } from '../support/deliveries.ts';

const FULL = process.env['HOOKONCE_TEST_FULL'] === '1';
const patience = { retryAfterScale: 0.1, maxTries: 200 };

/** Delivers `ids` as impatient senders do, `lanes` at a time. Resolves when all have been accepted. */
async function deliverAll(cluster: AsyncCluster, ids: readonly string[], lanes = 24): Promise<void> {
  const queue = ids.entries();
  const lane = async (): Promise<void> => {
    for (const [n, id] of queue) {
      const send = async () => await cluster.post(n, '/github', github(id));
      const { ok, replies } = await deliverUntilDone(clock, send, patience);
      assert.ok(ok, `${id}: ${replies.map(({ status }) => status).join()}`);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

const idsOf = (name: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${name}-${n}`);

/** How often each event reached the application, of those that did not do so exactly once. */
function notOnce(cluster: AsyncCluster, ids: readonly string[]): Record<string, number[]> {
  const attempts = new Map(ids.map((id) => [id, [] as number[]]));
  for (const visit of cluster.application.visits) {
    const index = visit.headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'x-github-delivery');
    attempts.get(visit.headers[index + 1]!)?.push(visit.attempt);
  }
  return Object.fromEntries([...attempts].filter(([, seen]) => seen.length !== 1));
}

for (const store of ['Redis', 'PostgreSQL'] satisfies Store[]) {
  // PostgreSQL takes more time for each: as many only in the long run.
  const count = store === 'Redis' || FULL ? 1000 : 300;
  suite(`${store} as the queue`, () => {
    test(`killed and started again while ${count} deliveries are under way: every one that was accepted is forwarded once`, async () => {
      await using cluster = await startAsyncCluster({ store, nodes: 1, queue: eager });
      const ids = idsOf('kill', count);
      const delivered = deliverAll(cluster, ids);
      for (const visits of [count / 8, count / 2]) {
        await until(clock, 'deliveries under way', async () =>
          cluster.application.visits.length >= visits ? true : undefined,
        );
        await cluster.store.kill();
        await clock.sleep(300);
        await cluster.store.start();
      }
      await delivered;
      await until(
        clock,
        'the last forward',
        async () => {
          const missing = Object.values(notOnce(cluster, ids)).filter((seen) => seen.length === 0);
          return missing.length === 0 ? true : undefined;
        },
        60_000,
      );
      await drained(cluster);
      assert.deepEqual(notOnce(cluster, ids), {});
      assert.equal(await cluster.depth('dead'), 0);
    });

    test('a gateway that is killed in the middle of its jobs: each event ends in one success, and what was repeated says so', async () => {
      await using cluster = await startAsyncCluster({
        store,
        nodes: 1,
        queue: { ...eager, concurrency: 8 },
        settings: { claims: shortLock, upstream: { timeout: '5s' } },
      });
      cluster.application.otherwise(async () => {
        await clock.sleep(60);
        return { status: 200 };
      });
      const ids = idsOf('gateway', 120);
      const delivered = deliverAll(cluster, ids);
      await until(clock, 'jobs in the middle', async () =>
        cluster.application.visits.length >= 30 ? true : undefined,
      );
      await cluster.gateways[0]!.restart();
      await delivered;
      await until(clock, 'all of them', async () => {
        const missing = Object.values(notOnce(cluster, ids)).filter((seen) => seen.length === 0);
        return missing.length === 0 ? true : undefined;
      });
      await queueUp(cluster.gateways[0]!);
      await drained(cluster);
      const repeated = Object.values(notOnce(cluster, ids));
      assert.ok(repeated.length <= 8, `${repeated.length} events were repeated, more than were worked on`);
      for (const attempts of repeated) assert.deepEqual(attempts, [1, 2]);
      assert.equal(await cluster.depth('dead'), 0);
    });

    test('the application is down: what is accepted waits, nothing dies, and all of it is forwarded once it is back', async () => {
      await using cluster = await startAsyncCluster({ store, nodes: 1, gateways: 1, queue: eager });
      await cluster.application.down();
      const ids = idsOf('down', 40);
      await deliverAll(cluster, ids);
      const depth = async (): Promise<number> =>
        (await cluster.depth('waiting')) + (await cluster.depth('delayed')) + (await cluster.depth('active'));
      await until(clock, 'a depth of 40', async () => ((await depth()) === 40 ? true : undefined));
      if (FULL) await clock.sleep(60_000);
      assert.ok((await cluster.metric('hookonce_queue_oldest_seconds')) > 0);
      await cluster.application.up();
      await drained(cluster);
      assert.deepEqual(notOnce(cluster, ids), {});
      assert.equal(await cluster.depth('dead'), 0);
      assert.equal(await cluster.metric('hookonce_queue_oldest_seconds'), 0);
    });

    test('an application that always fails: as many dead letters as events; replayed after the mend each is forwarded once', async () => {
      await using cluster = await startAsyncCluster({
        store,
        nodes: 1,
        gateways: 2,
        queue: { attempts: 3, backoff: { first: '50ms', max: '50ms' } },
        settings: { redis: { timeout: '1s' }, claims: { budget: '3s', lockTtl: '30s' } },
      });
      await using run = await commandLine(cluster.config);
      cluster.application.otherwise(answer(500));
      const ids = idsOf('dead', 30);
      await deliverAll(cluster, ids);
      await until(clock, 'as many dead letters', async () => ((await cluster.depth('dead')) === 30 ? true : undefined));
      assert.equal(cluster.application.visits.length, 90);
      cluster.application.otherwise(answer(200));
      const listed = await run('dlq', 'list', '--route', 'github', '--json');
      assert.equal((JSON.parse(listed.text) as { letters: unknown[] }).letters.length, 30);
      const replayed = await run('dlq', 'replay', '--all');
      assert.deepEqual(replayed, { code: 0, text: '30 replayed.' });
      await until(clock, 'the replays', async () => (cluster.application.visits.length >= 120 ? true : undefined));
      await drained(cluster);
      for (const attempts of Object.values(notOnce(cluster, ids))) assert.deepEqual(attempts, [1, 2, 3, 4]);
      await until(clock, 'no dead letter', async () => ((await cluster.depth('dead')) === 0 ? true : undefined));
    });

    test('B110: unavailable: 503 within the budget, and the retry is accepted once it is back', async () => {
      await using cluster = await startAsyncCluster({
        store,
        nodes: 1,
        gateways: 1,
        queue: eager,
        settings: { routes: [asyncRoute, syncRoute] },
      });
      const { pid } = cluster.gateways[0]!.child;
      await cluster.store.kill();
      const begunMs = clock.now();
      const refused = await cluster.post(0, '/github', github('evt_22'));
      assert.deepEqual([refused.status, outcome(refused), retryAfter(refused)], [503, 'unavailable', 1]);
      assert.ok(clock.now() - begunMs < 3000, `${clock.now() - begunMs} ms`);
      const sync = await cluster.post(0, '/sync', github('evt_23'));
      assert.deepEqual([sync.status, cluster.application.of('evt_23').length], [200, 1], 'sync routes do not care');
      await cluster.store.start();
      await deliverAll(cluster, ['evt_22']);
      await until(clock, 'the forward', async () => (cluster.application.of('evt_22').length > 0 ? true : undefined));
      await drained(cluster);
      assert.deepEqual(notOnce(cluster, ['evt_22', 'evt_23']), {});
      assert.equal(cluster.gateways[0]!.child.pid, pid);
      assert.ok(!cluster.gateways[0]!.child.lines.some((line) => line.includes('should not have happened')));
    });
  });
}

test('no free place at the application: jobs wait, and use no attempt', async () => {
  await using cluster = await startAsyncCluster({
    ...{ nodes: 1, gateways: 1 },
    queue: { attempts: 1, concurrency: 8 },
    settings: { upstream: { maxInFlight: 1, maxWaiting: 0, maxWait: '0ms' } },
  });
  let most = 0;
  let active = 0;
  cluster.application.otherwise(async () => {
    most = Math.max(most, (active += 1));
    await clock.sleep(30);
    active -= 1;
    return { status: 200 };
  });
  const ids = idsOf('busy', 24);
  await deliverAll(cluster, ids);
  await until(clock, 'all of them', async () => (cluster.application.visits.length >= 24 ? true : undefined));
  await drained(cluster);
  assert.deepEqual(notOnce(cluster, ids), {});
  assert.equal(most, 1);
  assert.ok((await cluster.metric('hookonce_queue_attempts_total', { result: 'waited' })) > 0);
  assert.equal(await cluster.depth('dead'), 0);
});

test('PostgreSQL ends the sessions of its clients: the gateway lives, and goes on', async () => {
  await using cluster = await startAsyncCluster({ store: 'PostgreSQL', nodes: 1, gateways: 1, queue: eager });
  const { pid } = cluster.gateways[0]!.child;
  const store = cluster.store as Postgres;
  for (const round of [1, 2, 3]) {
    await store.terminateBackends();
    const ids = idsOf(`ended-${round}`, 5);
    await deliverAll(cluster, ids);
    await until(clock, 'the forwards', async () =>
      Object.keys(notOnce(cluster, ids)).length === 0 ? true : undefined,
    );
  }
  await drained(cluster);
  assert.equal(cluster.gateways[0]!.child.pid, pid);
});

const githubRoute = { sender: 'github', secrets: [{ file: './github.secret' }] };
const asyncRoute = { ...githubRoute, name: 'github', path: '/github' };
const syncRoute = { ...githubRoute, name: 'sync', path: '/sync', mode: 'sync' };
