/** The queue's Redis is demoted: connections to it stay, and refuse every write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { eager, queueUp } from '../support/async.ts';
import { startCluster } from '../support/cluster.ts';
import { routes } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';
import { onNode } from '../support/keys.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

test('a primary that becomes a replica: deliveries and workers move on to the new one', async () => {
  await using old = await startRedisServer({ appendonly: 'always' });
  await using promoted = await startRedisServer({ appendonly: 'always' });
  await using proxy = await startTcpProxy(clock, old.port);
  await using cluster = await startCluster({
    ...{ nodes: 1, gateways: 1 },
    settings: {
      routes: routes.map((route) => ({ mode: 'async', ...route })),
      top: { queue: { url: proxy.url, ...eager } },
    },
  });
  await queueUp(cluster.gateways[0]!);
  const post = async (id: string) => await cluster.post(0, '/github', github(id));
  const forwarded = async (id: string): Promise<unknown> =>
    await until(clock, `${id} at the application`, () => (cluster.application.of(id).length > 0 ? true : undefined));
  assert.equal((await post('before')).status, 202);
  await forwarded('before');

  proxy.retarget(promoted.port);
  await onNode(old, async (redis) => await redis.replicaof('127.0.0.1', promoted.port));
  const refused = await post('after');
  assert.deepEqual([refused.status, outcome(refused)], [503, 'unavailable'], 'it cannot be written to');
  await until(clock, 'the retry to be accepted', async () => ((await post('after')).status === 202 ? true : undefined));
  await forwarded('after');
  assert.equal(cluster.application.of('after').length, 1);
});
