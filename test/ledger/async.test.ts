/** In async mode the ledger guards the work on an event, whatever the nodes forget about its acceptance. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { until } from '../../src/demo/until.ts';
import { queueUp, startAsyncCluster } from '../support/async.ts';
import { shortLock } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';
import { onNode } from '../support/keys.ts';
import { startPostgres } from '../support/postgres.ts';

test('all nodes forget: an event that is accepted again is a duplicate for the worker', async () => {
  await using postgres = await startPostgres();
  const claims = { ...shortLock, lockTtl: '4s', budget: '1300ms', recoverAfter: '1s' };
  const ledger = { url: { file: './ledger.secret' }, timeout: '1s' };
  await using cluster = await startAsyncCluster({
    ...{ nodes: 1, files: { 'ledger.secret': postgres.url } },
    settings: { claims, top: { ledger } },
  });
  const post = async (n: number) => await cluster.post(n, '/github', github('event'));
  assert.deepEqual([(await post(0)).status, cluster.application.visits.length < 2], [202, true]);
  const works = async (result: string, count: number): Promise<unknown> =>
    await until(clock, `${count} tries that are ${result}`, async () =>
      (await cluster.metric('hookonce_queue_attempts_total', { result })) === count ? true : undefined,
    );
  await works('delivered', 1);
  const rows = await postgres.query('select 1 from hookonce_events');
  assert.equal(rows.length, 1, 'the work alone has a row');
  // A gateway tells a node again what it wrote in its last seconds: these have written nothing.
  for (const gateway of cluster.gateways) {
    await gateway.restart();
    await queueUp(gateway);
  }
  await onNode(cluster.nodes[0]!, async (redis) => await redis.flushall());
  const { replies } = await deliverUntilDone(clock, async () => await post(1), { retryAfterScale: 0.2, maxTries: 200 });
  assert.equal(outcome(replies.at(-1)!), 'accepted', 'the nodes do not know it any more');
  await works('duplicate', 1);
  assert.equal(cluster.application.visits.length, 1);
});
