/** A Redis Cluster as a voter, on a real one of three shards: what claims see of it, and what becomes of them when it changes. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { keys, tagOf } from '../../src/redis/codec.ts';
import { slotOf, TAGS } from '../../src/redis/slots.ts';
import { redisLinks, type NamedLink } from '../../src/redis/voters.ts';
import { onNode } from '../support/keys.ts';
import { countedVoters, freshKey, keyOf, linksTo, patient, quorumOver, type Quorum } from '../support/quorum.ts';
import { startRedisCluster, type RedisCluster } from '../support/redis-cluster.ts';
import { claimsSuite } from './claims-suite.ts';

const DAY = 86_400_000;
const access = { username: undefined, password: undefined, tls: undefined };
const completion = { status: 200, traceId: '', reply: undefined };

/** One voter; reached through its first member, which names the others. */
function linkTo({ shards: [first] }: RedisCluster, timeoutMs = patient.voterTimeoutMs): NamedLink {
  const { port } = first!;
  const seed = { host: '127.0.0.1', port };
  const nodes = [{ ...access, ...seed, name: 'cluster', cluster: [seed] }];
  return redisLinks({ nodes, prefix: 'ho', timeoutMs }, clock)[0]!;
}

/** Ids of which each of the sixteen lanes has some. */
const everyLane = (name: string): ReturnType<typeof keyOf>[] =>
  Array.from({ length: 100 }, (_, n) => keyOf(`${name}-${n}`));

async function counting(one: Quorum): Promise<void> {
  await until(clock, 'the cluster to count', () => one.voters[0]!.counted || undefined);
}

suite('a cluster as a voter', { concurrency: true }, () => {
  claimsSuite('a Redis Cluster', async () => {
    const cluster = await startRedisCluster();
    const [one, two] = [quorumOver([linkTo(cluster)]), quorumOver([linkTo(cluster)])];
    await Promise.all([countedVoters(one, 1), countedVoters(two, 1)]);
    return {
      ...{ one: one.claims, two: two.claims },
      [Symbol.asyncDispose]: async () => {
        for (const part of [one, two, cluster]) await part[Symbol.asyncDispose]();
      },
    };
  });

  claimsSuite('a Redis Cluster beside two Redis', async () => {
    const cluster = await startRedisCluster();
    const servers = await Promise.all([startRedisServer(), startRedisServer()]);
    const links = () => [
      linkTo(cluster),
      ...linksTo(
        servers.map(({ port }) => port),
        patient.voterTimeoutMs,
      ),
    ];
    const [one, two] = [quorumOver(links()), quorumOver(links())];
    await Promise.all([countedVoters(one, 3), countedVoters(two, 3)]);
    return {
      ...{ one: one.claims, two: two.claims },
      [Symbol.asyncDispose]: async () => {
        for (const part of [one, two, cluster, ...servers]) await part[Symbol.asyncDispose]();
      },
    };
  });

  suite('of three shards', { concurrency: false }, () => {
    let cluster: RedisCluster;
    let one: Quorum;
    before(async () => {
      cluster = await startRedisCluster();
      one = quorumOver([linkTo(cluster)]);
      await countedVoters(one, 1);
    });
    after(async () => {
      await one[Symbol.asyncDispose]();
      await cluster[Symbol.asyncDispose]();
    });

    test('B59: all keys of an event are in one slot, by the cluster’s own account, and ours', async () => {
      for (const { id } of everyLane('slots')) {
        const tag = tagOf(id);
        const names = [keys.lock('ho', id), keys.record('ho', id), keys.marker('ho', tag), keys.hold('ho', tag)];
        const slots = await onNode(
          cluster.shards[0]!,
          async (redis) => await Promise.all(names.map(async (name) => await redis.cluster('KEYSLOT', name))),
        );
        assert.deepEqual(new Set(slots.map(Number)), new Set([slotOf(tag)]));
      }
    });

    test('claims of every lane are won, completed, found again, and lie on all three shards', async () => {
      const all = everyLane('lanes');
      assert.equal(new Set(all.map(({ id }) => tagOf(id))).size, TAGS.length);
      await Promise.all(
        all.map(async (key) => {
          const claim = await one.claims.claim(key, DAY);
          assert.ok(claim.kind === 'won', claim.kind);
          await one.claims.complete(claim.lease, completion);
          assert.equal((await one.claims.claim(key, DAY)).kind, 'done');
        }),
      );
      for (const shard of cluster.shards) {
        const records = await onNode(shard, async (redis) => await redis.keys('ho:*:r'));
        assert.ok(records.length > 0 && records.length < all.length);
      }
      assert.deepEqual(one.events.of('voterError'), []);
    });

    test('a scan finds the records of all shards, each once', async () => {
      const found: string[] = [];
      let cursor = '0';
      do {
        const page = await one.voters[0]!.scan(cursor);
        found.push(...page.ids);
        ({ cursor } = page);
      } while (cursor !== '0');
      const there = await Promise.all(
        cluster.shards.map(async (shard) => await onNode(shard, async (redis) => await redis.keys('ho:*:r'))),
      );
      assert.deepEqual(
        found.toSorted(),
        there
          .flat()
          .map((key) => key.slice('ho:{x}'.length, -2))
          .toSorted(),
      );
    });

    test('SCRIPT FLUSH on one shard: loaded again, nothing is lost', async () => {
      await onNode(cluster.shards[1]!, async (redis) => await redis.script('FLUSH'));
      const claims = await Promise.all(everyLane('flushed').map(async (key) => await one.claims.claim(key, DAY)));
      assert.ok(claims.every(({ kind }) => kind === 'won'));
    });

    test('an event of one lane and a shard that is down: the voter is down as a whole', async () => {
      await using other = await startRedisCluster({ nodeTimeoutMs: 60_000 });
      await using mine = quorumOver([linkTo(other)]);
      await countedVoters(mine, 1);
      await other.shards[2]!.kill();
      await until(clock, 'the shard to be missed', () => !mine.voters[0]!.eligible || undefined);
      assert.equal((await mine.claims.claim(freshKey(), DAY)).kind, 'unavailable');
      await other.shards[2]!.start();
      // It came back empty: what it knew has to be given up, as nobody else knows it.
      await until(clock, 'it to be back', () => mine.voters[0]!.eligible || undefined);
      assert.equal(mine.voters[0]!.hold, 'records');
    });
  });

  test('a slot that moves, keys and all: no event is forgotten, and the lane waits out its locks', async () => {
    await using cluster = await startRedisCluster({ appendonly: 'everysec' });
    await using one = quorumOver([linkTo(cluster, 500)], { claims: { lockTtlMs: 500, unknownHoldMs: 500 } });
    await countedVoters(one, 1);
    const all = everyLane('moving');
    for (const key of all) {
      const claim = await one.claims.claim(key, DAY);
      assert.ok(claim.kind === 'won');
      await one.claims.complete(claim.lease, completion);
    }
    const { boot } = one.voters[0]!;
    const from = await cluster.ownerOf('7');
    await cluster.move(
      '7',
      cluster.shards.find((shard) => shard !== from)!,
    );
    await until(clock, 'the move to be noticed', () => one.voters[0]!.boot !== boot || undefined);
    await counting(one);
    for (const key of all) assert.equal((await one.claims.claim(key, DAY)).kind, 'done');
    assert.ok(one.events.of('voterError').every(([, why]) => ['moved', 'disconnected', 'down'].includes(why)));
  });

  test('a shard fails over to its replica: found out by its run id, on hold for its locks, and nothing is forgotten', async () => {
    await using cluster = await startRedisCluster({ replicas: 1, appendonly: 'everysec' });
    await using one = quorumOver([linkTo(cluster, 500)], { claims: { lockTtlMs: 500, unknownHoldMs: 500 } });
    await countedVoters(one, 1);
    const all = everyLane('failing-over');
    for (const key of all) {
      const claim = await one.claims.claim(key, DAY);
      assert.ok(claim.kind === 'won');
      await one.claims.complete(claim.lease, completion);
    }
    await cluster.shards[0]!.kill();
    await until(clock, 'the shard to be missed', () => !one.voters[0]!.eligible || undefined);
    const held = await until(clock, 'the replica to be met', () =>
      one.voters[0]!.eligible ? one.voters[0]!.hold || undefined : undefined,
    );
    assert.equal(held, 'locks');
    await counting(one);
    for (const key of all) assert.equal((await one.claims.claim(key, DAY)).kind, 'done');
    assert.equal((await one.claims.claim(freshKey(), DAY)).kind, 'won');
  });

  test('a frozen shard is replaced: the voter counts again without it', async () => {
    await using cluster = await startRedisCluster({ replicas: 1, appendonly: 'everysec' });
    await using one = quorumOver([linkTo(cluster, 500)], { claims: { lockTtlMs: 500, unknownHoldMs: 500 } });
    await countedVoters(one, 1);
    const { boot } = one.voters[0]!;
    cluster.shards[1]!.freeze();
    await until(clock, 'the replica to be met', () => one.voters[0]!.boot !== boot || undefined);
    await counting(one);
    const claims = await Promise.all(everyLane('thawing').map(async (key) => await one.claims.claim(key, DAY)));
    assert.ok(claims.every(({ kind }) => kind === 'won'));
    cluster.shards[1]!.thaw();
  });
});
