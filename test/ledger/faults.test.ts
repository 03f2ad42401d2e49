/** What the ledger is for, on real parts: nodes that forget, nodes that are gone, and a ledger that is gone itself. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { until } from '../../src/demo/until.ts';
import { held } from '../support/application.ts';
import type { Cluster } from '../support/cluster.ts';
import { github, outcome, retryAfter } from '../support/deliveries.ts';
import { onNode } from '../support/keys.ts';
import { startLedgerCluster, type LedgerCluster } from '../support/ledger-cluster.ts';

const deliver = async (cluster: Cluster, id: string, n = 0) => await cluster.post(n, '/github', github(id));
const names = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${prefix}-${n}`);
const alone = { settings: { route: { onUnavailable: 'ledger' } } };

/** As a sender does: again and again until it is taken. */
async function taken(cluster: Cluster, ids: readonly string[]): Promise<void> {
  const all = ids.map(async (id, n) => {
    const send = async () => await deliver(cluster, id, n);
    const { ok } = await deliverUntilDone(clock, send, { retryAfterScale: 0.2, maxTries: 200 });
    assert.ok(ok, id);
  });
  await Promise.all(all);
}

/** Each has had success from the application exactly once, and is a duplicate at every gateway. */
async function onceEach(
  cluster: Cluster,
  ids: readonly string[],
  succeeded: ReadonlyMap<string, number>,
): Promise<void> {
  for (const id of ids) assert.equal(succeeded.get(id), 1, id);
  for (const [n, id] of ids.entries()) {
    const reply = await deliver(cluster, id, n + 1);
    assert.deepEqual([reply.status, outcome(reply)], [200, 'duplicate'], id);
    assert.equal(succeeded.get(id), 1, id);
  }
}

/** An application that fails every third visit, and counts its successes per event. */
function countingSuccess(cluster: Cluster): Map<string, number> {
  const succeeded = new Map<string, number>();
  let visits = 0;
  cluster.application.otherwise((visit) => {
    visits += 1;
    if (visits % 3 === 0) return { status: 500 };
    const id = header(visit.headers, 'x-github-delivery') ?? '';
    succeeded.set(id, (succeeded.get(id) ?? 0) + 1);
    return { status: 200 };
  });
  return succeeded;
}

const flushAll = async (cluster: Cluster): Promise<void> =>
  void (await Promise.all(
    cluster.nodes.map(async (node) => await onNode(node, async (redis) => await redis.flushall())),
  ));

async function restartEmpty(cluster: Cluster): Promise<void> {
  await Promise.all(cluster.nodes.map(async (node) => await node.kill()));
  await Promise.all(cluster.nodes.map(async (node) => await node.start()));
}

suite('faults with a ledger', { concurrency: 2 }, () => {
  test('B58: the primary fails over to a replica that never got the key: the event is a duplicate all the same', async () => {
    await using set = await startLedgerCluster({ nodes: 1 });
    const { cluster } = set;
    assert.equal((await deliver(cluster, 'D25')).status, 200);
    // A gateway tells a node again what it wrote in its last seconds: these have written nothing.
    for (const gateway of cluster.gateways) await gateway.restart();
    await set.ledgers(true);
    await flushAll(cluster);
    for (const n of [0, 1]) {
      const copy = await deliver(cluster, 'D25', n);
      assert.deepEqual([copy.status, outcome(copy)], [200, 'duplicate']);
    }
    assert.equal(cluster.application.of('D25').length, 1);
    await taken(cluster, ['D26']);
    const late = await deliver(cluster, 'D25', 1);
    assert.equal(outcome(late), 'duplicate', 'also once the node counts again');
    assert.equal(cluster.application.of('D25').length, 1);
  });

  for (const [fault, strike] of [
    ['flushed at once', flushAll],
    ['restarted empty', restartEmpty],
  ] as const) {
    test(`all three nodes ${fault} while deliveries run: nothing is forwarded again after success`, async () => {
      await using set = await startLedgerCluster();
      const { cluster } = set;
      const succeeded = countingSuccess(cluster);
      const before = names('before', 20);
      await taken(cluster, before);
      const during = names('during', 40);
      const running = taken(cluster, during);
      await until(clock, 'some of them to be done', () => (succeeded.size > 25 ? true : undefined));
      await strike(cluster);
      await running;
      await onceEach(cluster, [...before, ...during], succeeded);
    });
  }

  test('all three nodes flushed while the ledger may decide alone: once each, and nobody waits for the nodes', async () => {
    await using set = await startLedgerCluster(alone);
    const { cluster } = set;
    const succeeded = countingSuccess(cluster);
    const ids = names('event', 40);
    const running = Promise.all([taken(cluster, ids), taken(cluster, ['shift', ...ids])]);
    await until(clock, 'some of them to be done', () => (succeeded.size > 10 ? true : undefined));
    await flushAll(cluster);
    await running;
    await onceEach(cluster, ids, succeeded);
  });

  test('nodes and PostgreSQL gone: 503 in time; either back is enough', async () => {
    await using set = await startLedgerCluster(alone);
    const { cluster, postgres } = set;
    for (const node of cluster.nodes) await node.kill();
    await postgres.stop();
    for (const id of names('event', 5)) {
      const begun = clock.now();
      const reply = await deliver(cluster, id);
      assert.deepEqual([reply.status, outcome(reply), retryAfter(reply)], [503, 'unavailable', 1]);
      assert.ok(clock.now() - begun < 5_000, `${clock.now() - begun}`);
    }
    assert.equal(cluster.application.visits.length, 0);
    await postgres.start();
    await set.ledgers(true);
    await taken(cluster, names('event', 3));
    await postgres.stop();
    for (const node of cluster.nodes) await node.start();
    await taken(cluster, names('event', 5).slice(3));
    for (const id of names('event', 5)) assert.equal(cluster.application.of(id).length, 1, id);
  });

  test('an event in flight while all nodes forget: held by its row, and its success counts', async () => {
    await using set = await startLedgerCluster({ nodes: 1 });
    const { cluster } = set;
    const work = held();
    cluster.application.script('slow', work.step);
    const first = deliver(cluster, 'slow');
    first.catch(() => undefined);
    await work.arrived;
    await flushAll(cluster);
    await taken(cluster, ['other', 'other too']);
    const copy = await deliver(cluster, 'slow', 1);
    assert.deepEqual([copy.status, outcome(copy)], [503, 'in-progress']);
    work.finish();
    assert.equal((await first).status, 200);
    assert.equal(outcome(await deliver(cluster, 'slow', 1)), 'duplicate');
    assert.equal(cluster.application.of('slow').length, 1);
  });

  for (const down of [2, 3]) {
    test(`${down} of three nodes down with onUnavailable: ledger: service goes on, once each`, async () => {
      await using set = await startLedgerCluster(alone);
      const { cluster } = set;
      const succeeded = countingSuccess(cluster);
      const before = names('before', 5);
      await taken(cluster, before);
      for (const node of cluster.nodes.slice(0, down)) await node.kill();
      const during = names('during', 20);
      // Two copies of each, at different gateways at the same time.
      await Promise.all([taken(cluster, during), taken(cluster, ['shift', ...during])]);
      await onceEach(cluster, [...before, ...during], succeeded);
      assert.ok((await cluster.metric('hookonce_ledger_verdicts_total', { verdict: 'alone' })) >= during.length);
      assert.equal(await cluster.metric('hookonce_degradation', { state: 'ledger_only' }), cluster.gateways.length);
      for (const node of cluster.nodes.slice(0, down)) await node.start();
      await taken(cluster, ['after']);
      await onceEach(cluster, [...before, ...during], succeeded);
    });
  }

  test('nodes down without onUnavailable: ledger: what is done is a duplicate, the rest waits', async () => {
    await using set = await startLedgerCluster();
    const { cluster } = set;
    assert.equal((await deliver(cluster, 'known')).status, 200);
    for (const node of cluster.nodes) await node.kill();
    assert.equal(outcome(await deliver(cluster, 'known', 1)), 'duplicate');
    const fresh = await deliver(cluster, 'new', 1);
    assert.deepEqual([fresh.status, outcome(fresh), retryAfter(fresh)], [503, 'unavailable', 1]);
    assert.equal(cluster.application.of('new').length, 0);
    assert.equal(await cluster.metric('hookonce_degradation', { state: 'no_quorum' }), cluster.gateways.length);
  });

  test('PostgreSQL down: service goes on by quorum, and the rows are caught up afterwards', async () => {
    await using set = await startLedgerCluster();
    const { cluster, postgres } = set;
    await taken(cluster, names('before', 5));
    await postgres.stop();
    const during = names('during', 10);
    for (const [n, id] of during.entries()) assert.equal((await deliver(cluster, id, n)).status, 200);
    assert.ok((await cluster.metric('hookonce_ledger_behind')) > 0);
    assert.ok((await cluster.metric('hookonce_ledger_write_failures_total')) > 0);
    await set.ledgers(false);
    await postgres.start();
    await set.ledgers(true);
    await set.caughtUp();
    await flushAll(cluster);
    for (const [n, id] of during.entries()) {
      assert.equal(outcome(await deliver(cluster, id, n + 1)), 'duplicate', id);
      assert.equal(cluster.application.of(id).length, 1);
    }
  });

  test('PostgreSQL killed while deliveries run: every one is taken, and done once', async () => {
    await using set = await startLedgerCluster();
    const { cluster, postgres } = set;
    const succeeded = countingSuccess(cluster);
    const ids = names('event', 60);
    const running = taken(cluster, ids);
    await until(clock, 'some of them to be done', () => (succeeded.size > 15 ? true : undefined));
    await postgres.kill();
    await running;
    await postgres.start();
    await set.ledgers(true);
    await set.caughtUp();
    await onceEach(cluster, ids, succeeded);
  });

  test('a ledger that is silent costs its time limit a few times, and is skipped until it answers', async () => {
    await using set = await startLedgerCluster({ ledger: { timeout: '300ms' } });
    const { cluster, proxy } = set;
    proxy.stall();
    const begun = clock.now();
    for (const id of names('event', 12)) assert.equal((await deliver(cluster, id)).status, 200);
    // Three statements in a row for the one gateway that was asked; twelve times that if each delivery waited.
    assert.ok(clock.now() - begun < 12 * 2 * 300, `${clock.now() - begun}`);
    proxy.heal();
    await set.ledgers(true);
    await set.caughtUp();
    await flushAll(cluster);
    for (const id of names('event', 12)) assert.equal(outcome(await deliver(cluster, id, 1)), 'duplicate');
  });

  test('onDown: reject: nothing is forwarded without a row, and nothing is held up afterwards', async () => {
    await using set = await startLedgerCluster({ ledger: { onDown: 'reject' } });
    const { cluster, postgres } = set;
    await postgres.stop();
    const reply = await deliver(cluster, 'event');
    assert.deepEqual([reply.status, outcome(reply), retryAfter(reply)], [503, 'unavailable', 1]);
    assert.equal(cluster.application.visits.length, 0);
    await postgres.start();
    await set.ledgers(true);
    await taken(cluster, ['event']);
    const [visit] = cluster.application.of('event');
    assert.equal(header(visit!.headers, 'hookonce-attempt'), '1', 'no byte was sent before');
  });

  test('50 simultaneous deliveries of one event over four gateways with no Redis at all: one forward', async () => {
    await using set = await startLedgerCluster({ nodes: 0, gateways: 4 });
    const { cluster } = set;
    for (const id of names('event', 3)) {
      const replies = await Promise.all(Array.from({ length: 50 }, async (_, n) => await deliver(cluster, id, n)));
      assert.equal(cluster.application.of(id).length, 1);
      assert.equal(replies.filter((reply) => outcome(reply) === undefined).length, 1, 'one has the answer itself');
      for (const reply of replies) assert.ok([200, 503].includes(reply.status), `${reply.status}`);
      for (const n of [0, 1, 2, 3]) assert.equal(outcome(await deliver(cluster, id, n)), 'duplicate');
      assert.equal(header(cluster.application.of(id)[0]!.headers, 'hookonce-attempt'), '1');
    }
  });

  test('copies at another gateway wait for the first one, with no Redis at all', async () => {
    const inFlight = { policy: 'wait', wait: '3s' };
    await using set = await startLedgerCluster({ nodes: 0, settings: { route: { inFlight } } });
    const { cluster } = set;
    const work = held();
    cluster.application.script('event', work.step);
    const first = deliver(cluster, 'event');
    await work.arrived;
    const copies = [0, 1, 1].map(async (n) => await deliver(cluster, 'event', n));
    await until(clock, 'all copies to wait', async () =>
      (await cluster.metric('hookonce_waiting')) === 3 ? true : undefined,
    );
    work.finish();
    assert.equal((await first).status, 200);
    for (const copy of await Promise.all(copies)) assert.deepEqual([copy.status, outcome(copy)], [200, 'duplicate']);
    assert.equal(cluster.application.visits.length, 1);
  });

  test('no Redis at all: PostgreSQL down is 503, and what was done stays known over its restart and the gateways’', async () => {
    await using set = await startLedgerCluster({ nodes: 0 });
    const { cluster, postgres } = set;
    assert.equal((await deliver(cluster, 'known')).status, 200);
    await postgres.stop();
    const fresh = await deliver(cluster, 'new', 1);
    assert.deepEqual([fresh.status, outcome(fresh), retryAfter(fresh)], [503, 'unavailable', 1]);
    await postgres.start();
    await set.ledgers(true);
    await taken(cluster, ['new']);
    for (const gateway of cluster.gateways) await gateway.restart();
    for (const id of ['known', 'new']) {
      assert.equal(outcome(await deliver(cluster, id, 1)), 'duplicate');
      assert.equal(cluster.application.of(id).length, 1);
    }
  });

  test('no Redis at all: a gateway is killed in the middle, and another takes over as attempt 2', async () => {
    await using set = await startLedgerCluster({ nodes: 0 });
    const { cluster } = set;
    const work = held();
    cluster.application.script('event', work.step);
    const first = deliver(cluster, 'event').catch(() => undefined);
    await work.arrived;
    await cluster.gateways[0]!.child[Symbol.asyncDispose]();
    await first;
    assert.equal((await deliver(cluster, 'event', 1)).status, 503, 'its row is held');
    const send = async () => await deliver(cluster, 'event', 1);
    assert.ok((await deliverUntilDone(clock, send, { retryAfterScale: 0.2, maxTries: 200 })).ok);
    const attempts = cluster.application.of('event').map((visit) => header(visit.headers, 'hookonce-attempt'));
    assert.deepEqual(attempts, ['1', '2']);
  });

  test('a gateway is killed in the middle, and all nodes forget: the next attempt is marked', async () => {
    await using set = await startLedgerCluster({ nodes: 1 });
    const { cluster } = set;
    const work = held();
    cluster.application.script('event', work.step);
    const first = deliver(cluster, 'event').catch(() => undefined);
    await work.arrived;
    await cluster.gateways[0]!.child[Symbol.asyncDispose]();
    await first;
    await flushAll(cluster);
    const send = async () => await deliver(cluster, 'event', 1);
    const { ok } = await deliverUntilDone(clock, send, { retryAfterScale: 0.2, maxTries: 200 });
    assert.ok(ok);
    const attempts = cluster.application.of('event').map((visit) => Number(header(visit.headers, 'hookonce-attempt')));
    assert.deepEqual([attempts.length, attempts[0]], [2, 1]);
    assert.ok(attempts[1]! > 1, `${attempts[1]}`);
  });

  test('B102: PostgreSQL ends every session, idle and busy: the process lives, and rows are written again', async () => {
    await using set = await startLedgerCluster({ gateways: 1 });
    const { cluster, postgres } = set;
    const [gateway] = cluster.gateways;
    const { pid } = gateway!.child;
    assert.equal((await deliver(cluster, 'before')).status, 200);
    await postgres.terminateBackends();
    assert.equal((await deliver(cluster, 'idle')).status, 200);
    const work = held();
    cluster.application.script('busy', work.step);
    const busy = deliver(cluster, 'busy');
    await work.arrived;
    await postgres.terminateBackends();
    work.finish();
    assert.equal((await busy).status, 200);
    await postgres.stop();
    assert.equal((await deliver(cluster, 'down')).status, 200);
    assert.ok(
      (await cluster.metric('hookonce_ledger_write_failures_total')) > 0,
      'no row is lost without being counted',
    );
    await postgres.start();
    await set.ledgers(true);
    await set.caughtUp();
    assert.equal((await deliver(cluster, 'after')).status, 200);
    const rows = await postgres.query('select 1 from hookonce_events where done is not null');
    assert.equal(rows.length, 5);
    assert.deepEqual([gateway!.child.pid, gateway!.child.running()], [pid, true]);
  });

  test('a primary that is made read-only: by quorum until it is writable again, then caught up', async () => {
    await using set = await startLedgerCluster();
    const { cluster, postgres } = set;
    await taken(cluster, ['before']);
    const readOnly = async (value: string): Promise<void> => {
      await postgres.query(`alter system set default_transaction_read_only = ${value}`);
      await postgres.query('select pg_reload_conf()');
    };
    await readOnly('on');
    await until(clock, 'it to be read-only', async () => {
      const [row] = await postgres.query<{ on: string }>("select current_setting('transaction_read_only') as on");
      return row?.on === 'on' ? true : undefined;
    });
    const during = names('during', 6);
    for (const [n, id] of during.entries()) assert.equal((await deliver(cluster, id, n)).status, 200);
    assert.ok((await cluster.metric('hookonce_ledger_errors_total', { class: 'readonly' })) > 0);
    await set.ledgers(false);
    await writable(set);
    await set.ledgers(true);
    await set.caughtUp();
    await flushAll(cluster);
    for (const [n, id] of during.entries()) assert.equal(outcome(await deliver(cluster, id, n)), 'duplicate');
  });
});

/** ALTER SYSTEM may not run in a transaction block, so the session is made writable first. */
async function writable({ postgres }: LedgerCluster): Promise<void> {
  const url = `${postgres.url}?options=-c%20default_transaction_read_only%3Doff`;
  await postgres.query('alter system reset default_transaction_read_only', url);
  await postgres.query('select pg_reload_conf()', url);
}
