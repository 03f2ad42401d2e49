import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { github, outcome, retryAfter } from '../support/deliveries.ts';
import { stormForwardsOnce } from '../support/storm.ts';

let cluster: Cluster;
before(async () => void (cluster = await startCluster()));
after(async () => await cluster[Symbol.asyncDispose]());

const slow = async () => {
  await systemClock.sleep(100 + systemClock.random() * 200);
  return { status: 200 };
};

test('300 events, each delivered five times at the same instant over two gateways, are forwarded 300 times', async () => {
  cluster.application.otherwise(slow);
  await stormForwardsOnce(cluster, { name: 'storm', events: 300, copies: 5 });
});

test('B01: two copies of one delivery at the same instant at two gateways are forwarded once', async () => {
  cluster.application.otherwise(async () => {
    await systemClock.sleep(300);
    return { status: 200, body: 'thanks' };
  });
  const stopped = () => cluster.metric('hookonce_deliveries_total', { outcome: 'in-progress' });
  const before_ = await stopped();
  const ids = Array.from({ length: 200 }, (_, n) => `B01-${n}`);
  for (let from = 0; from < ids.length; from += 20) {
    await Promise.all(ids.slice(from, from + 20).map(pair));
  }
  assert.equal(await stopped(), before_ + 200);

  async function pair(id: string): Promise<void> {
    const replies = await Promise.all([0, 1].map((n) => cluster.post(n, '/github', github(id, '{"a":1}'))));
    const [first, second] = replies.sort((a, b) => a.status - b.status);
    assert.equal(cluster.application.of(id).length, 1);
    assert.deepEqual([first!.status, first!.body.toString(), outcome(first!)], [200, 'thanks', undefined]);
    assert.deepEqual([second!.status, outcome(second!)], [503, 'in-progress']);
    assert.ok(retryAfter(second!) >= 1 && retryAfter(second!) <= 30);
  }
});

test('the same storm with one of three nodes down', async () => {
  cluster.application.otherwise(slow);
  await cluster.nodes[2]!.kill();
  await stormForwardsOnce(cluster, { name: 'storm-with-two', events: 300, copies: 5 });
});
