/** Gateways whose nodes are, or include, a real Redis Cluster of three masters. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { startGateway } from '../../src/demo/gateway.ts';
import { slotOf } from '../../src/redis/slots.ts';
import { scriptedApplication } from '../support/application.ts';
import { post, votersUp } from '../support/cluster.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import { custom, github, outcome } from '../support/deliveries.ts';
import { eventKeys, onNode } from '../support/keys.ts';
import { program } from '../support/program.ts';
import { startRedisCluster, urlsOf } from '../support/redis-cluster.ts';

test('B59: a cluster as the node: ids with braces and without, each once, and all keys of an event in one slot', async () => {
  await using cluster = await startRedisCluster();
  await using application = await scriptedApplication();
  const redis = { nodes: [{ cluster: urlsOf(cluster) }] };
  const config = gatewayConfig(application.url, ['redis://unused'], { redis });
  await using gateway = await startGateway(program, systemClock, { config, files: secretFiles });
  await votersUp(gateway, 1);
  const ids = ['a', 'b{c}', '}{', 'x', '{0}', '{}', '{x}:l', ...Array.from({ length: 60 }, (_, n) => `{n${n}}`)];
  for (const id of ids) {
    const replies = [await post(gateway, '/github', github(id)), await post(gateway, '/github', github(id))];
    assert.deepEqual(
      replies.map((reply) => [reply.status, outcome(reply)]),
      [
        [200, undefined],
        [200, 'duplicate'],
      ],
      id,
    );
    assert.equal(application.of(id).length, 1, id);
    const body = JSON.stringify({ id });
    assert.equal((await post(gateway, '/custom/a', custom(body))).status, 200, id);
    assert.equal(outcome(await post(gateway, '/custom/a', custom(body))), 'duplicate');
  }
  // Each shard holds what its slots say, whatever the ids were.
  const held = await Promise.all(
    cluster.shards.map(async (shard) => {
      const keys = await eventKeys(shard, 'ho');
      const slots = await onNode(
        shard,
        async (one) => await Promise.all(keys.map(async (key) => await one.cluster('KEYSLOT', key))),
      );
      keys.forEach((key, at) => assert.equal(slots[at], slotOf(/\{(.)\}/.exec(key)![1]!), key));
      return keys.length;
    }),
  );
  assert.equal(
    held.reduce((sum, keys) => sum + keys, 0),
    2 * ids.length,
    'one record each',
  );
  assert.ok(held.every((keys) => keys > 0));
});

test('a cluster with passwords, and users that may do what the docs say and no more: it counts from the first greeting', async () => {
  await using cluster = await startRedisCluster();
  await using application = await scriptedApplication();
  const password = 'a-test-password';
  const least = '+evalsha +script|load +get +set +del +pttl +scan +dbsize +info +time +config|get'.split(' ');
  const more = '+cluster|slots +cluster|keyslot +cluster|countkeysinslot'.split(' ');
  for (const shard of cluster.shards)
    await onNode(
      shard,
      async (redis) =>
        await redis.acl('SETUSER', 'hookonce', 'on', `>${password}`, 'resetkeys', '~ho:*', '-@all', ...least, ...more),
    );
  const redis = { nodes: [{ cluster: urlsOf(cluster), username: 'hookonce', password: { file: './redis.secret' } }] };
  const config = gatewayConfig(application.url, ['redis://unused'], { redis });
  const files = { ...secretFiles, 'redis.secret': password };
  await using gateway = await startGateway(program, systemClock, { config, files });
  await votersUp(gateway, 1);
  assert.equal((await post(gateway, '/github', github('allowed'))).status, 200);
  assert.equal(outcome(await post(gateway, '/github', github('allowed'))), 'duplicate');
  const ready = JSON.parse((await exchange(`${gateway.adminUrl}/readyz`)).body.toString()) as { voters: unknown };
  assert.deepEqual(ready.voters, [{ node: urlsOf(cluster)[0]!.replace('redis://', ''), state: 'up' }]);
});
