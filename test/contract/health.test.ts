/** Whether a voter is what the quorum takes it for: on real servers, and to the millisecond where clocks step. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import type { Facts } from '../../src/redis/facts.ts';
import { lockHoldMs } from '../../src/redis/items.ts';
import { MemoryLink } from '../../src/redis/link.ts';
import { RedisLink } from '../../src/redis/redis-link.ts';
import type { NamedLink } from '../../src/redis/voters.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { onNode } from '../support/keys.ts';
import { countedVoters, freshKey, quorumOver, type Quorum } from '../support/quorum.ts';

const DAY = 86_400_000;

interface Access {
  readonly host?: string;
  readonly username?: string;
  readonly password?: string;
}

const linkTo = (
  server: RedisServer,
  name: string,
  { host = '127.0.0.1', username, password }: Access = {},
): NamedLink => ({
  name,
  link: new RedisLink({ host, port: server.port, username, password, tls: undefined, prefix: 'ho', timeoutMs: 1_000 }),
});

const warnings = (one: Quorum, about: RegExp): unknown[] =>
  one.events.of('warn').flatMap(([message, details]) => (about.test(message) ? [details] : []));

/** Resolves after the next probe of every voter has been answered. */
async function probed(one: Quorum): Promise<void> {
  for (const voter of one.voters) await voter.greet();
  await Promise.all(one.voters.map(async (voter) => await voter.facts()));
}

suite('a voter is what it is taken for', { concurrency: true }, () => {
  test('one server under two names is one voter: the second does not count, and both are named', async () => {
    await using a = await startRedisServer();
    await using b = await startRedisServer();
    await using one = quorumOver([linkTo(a, 'a'), linkTo(a, 'a-again', { host: 'localhost' }), linkTo(b, 'b')]);
    await countedVoters(one, 2);
    await until(systemClock, 'the warning', () => warnings(one, /same server/)[0]);
    assert.deepEqual(warnings(one, /same server/), [{ nodes: ['a', 'a-again'] }]);
    assert.deepEqual(one.claims.voters[1], { node: 'a-again', state: 'held', why: 'the same server as a' });
    await until(systemClock, 'a quorum of the two', () => one.claims.available() || undefined);
    assert.equal((await one.claims.claim(freshKey(), DAY)).kind, 'won');
    // With b gone, one server would be a majority by itself.
    await b.kill();
    assert.equal((await one.claims.claim(freshKey(), DAY)).kind, 'unavailable');
  });

  test('B50: a replica does not count, and does again as a primary; told once each time', async () => {
    await using server = await startRedisServer();
    await using one = quorumOver([linkTo(server, 'a')]);
    await countedVoters(one, 1);
    await onNode(server, async (redis) => await redis.replicaof('127.0.0.1', '1'));
    await until(systemClock, 'the replica to be noticed', () => one.voters[0]!.unfit);
    assert.deepEqual(one.claims.voters, [{ node: 'a', state: 'held', why: 'a replica' }]);
    assert.equal((await one.claims.claim(freshKey(), DAY)).kind, 'unavailable');
    await onNode(server, async (redis) => await redis.replicaof('NO', 'ONE'));
    await until(systemClock, 'the primary to be noticed', () => one.voters[0]!.counted || undefined);
    assert.equal((await one.claims.claim(freshKey(), DAY)).kind, 'won');
    assert.deepEqual(warnings(one, /replica/), [{ node: 'a' }]);
  });

  test('B50: a replica that may be written to does not count either', async () => {
    await using server = await startRedisServer({ args: ['--replica-read-only', 'no'] });
    await using one = quorumOver([linkTo(server, 'a')]);
    await countedVoters(one, 1);
    await onNode(server, async (redis) => await redis.replicaof('127.0.0.1', '1'));
    await until(systemClock, 'the replica to be noticed', () => one.voters[0]!.unfit);
    assert.equal((await one.claims.claim(freshKey(), DAY)).kind, 'unavailable');
  });

  for (const policy of ['allkeys-lru', 'volatile-lru']) {
    test(`B107: maxmemory-policy ${policy} is told, with the keys that were dropped`, async () => {
      await using server = await startRedisServer();
      await onNode(server, async (redis) => await redis.config('SET', 'maxmemory-policy', policy));
      await using one = quorumOver([linkTo(server, 'a')]);
      await until(systemClock, 'the policy to be told', () => one.events.of('voterEviction')[0]);
      assert.deepEqual(one.events.of('voterEviction'), [['a', policy, 0]]);
      await onNode(server, async (redis) => await redis.config('SET', 'maxmemory-policy', 'noeviction'));
      await until(systemClock, 'the new policy to be told', () => one.events.of('voterEviction')[1]);
      assert.deepEqual(one.events.of('voterEviction')[1], ['a', 'noeviction', 0]);
    });
  }

  test('B108: CONFIG and INFO are forbidden: it counts all the same, and that is told once', async () => {
    await using server = await startRedisServer();
    const password = 'a-test-password';
    await onNode(
      server,
      async (redis) =>
        await redis.acl('SETUSER', 'limited', 'on', `>${password}`, '~*', '&*', '+@all', '-config', '-info'),
    );
    await using one = quorumOver([linkTo(server, 'a', { username: 'limited', password })]);
    await countedVoters(one, 1);
    await until(systemClock, 'the warning', () => warnings(one, /does not tell/)[0]);
    for (let n = 0; n < 3; n += 1) await probed(one);
    assert.deepEqual(warnings(one, /does not tell/), [
      { node: 'a', hidden: ['role', 'evictionPolicy', 'evictedKeys', 'appendfsync'] },
    ]);
    assert.equal((await one.claims.claim(freshKey(), DAY)).kind, 'won');
  });

  test('the least that a user must be allowed: with it everything is known, and everything is done', async () => {
    await using server = await startRedisServer();
    const password = 'a-test-password';
    const outside = ['+evalsha', '+script|load', '+scan', '+info', '+config|get', '+time'];
    const inside = ['+get', '+set', '+del', '+pttl', '+dbsize'];
    await onNode(
      server,
      async (redis) =>
        await redis.acl('SETUSER', 'least', 'on', `>${password}`, 'resetkeys', '~ho:*', '-@all', ...outside, ...inside),
    );
    await using one = quorumOver([linkTo(server, 'a', { username: 'least', password })]);
    await countedVoters(one, 1);
    const [facts] = (await one.voters[0]!.facts())!;
    for (const value of Object.values(facts!)) assert.notEqual(value, undefined);
    const claim = await one.claims.claim(freshKey(), DAY);
    assert.ok(claim.kind === 'won');
    await one.claims.complete(claim.lease, { status: 200, traceId: '', reply: undefined });
    assert.equal((await one.voters[0]!.scan('0')).ids.length, 1);
    assert.deepEqual(one.events.of('voterError'), []);
    assert.deepEqual(warnings(one, /does not tell/), []);
  });

  test('appendfsync always: after a restart it counts at once', async () => {
    await using server = await startRedisServer({ appendonly: 'always' });
    await using one = quorumOver([linkTo(server, 'a')], { claims: { lockTtlMs: 60_000 } });
    await countedVoters(one, 1);
    const key = freshKey();
    assert.equal((await one.claims.claim(key, DAY)).kind, 'won');
    const { boot } = one.voters[0]!;
    await until(systemClock, 'it to be known', () => one.voters[0]!.appendfsync);
    await one.voters[0]!.greet();
    await server.kill();
    await server.start();
    await until(
      systemClock,
      'it to be greeted anew',
      () => (one.voters[0]!.eligible && one.voters[0]!.boot !== boot) || undefined,
    );
    assert.ok(one.voters[0]!.counted);
    assert.equal((await one.claims.claim(key, DAY)).kind, 'held');
  });
});

suite('the clock of a voter', () => {
  /** A voter whose wall clock a test sets; `hidden`: what becomes of ours meanwhile. */
  class ClockedLink extends MemoryLink {
    aheadMs = 0;
    readonly #clock: ManualClock;

    constructor(clock: ManualClock) {
      super(() => clock.now());
      this.#clock = clock;
    }

    async facts(): Promise<readonly Facts[]> {
      const timeMs = this.#clock.now() + this.aheadMs;
      const server = 'a:6379';
      return [
        { server, role: 'master', evictionPolicy: 'noeviction', evictedKeys: 0, appendfsync: 'everysec', timeMs },
      ];
    }
  }

  async function rig(): Promise<{
    clock: ManualClock;
    link: ClockedLink;
    one: Quorum;
    pass(ms: number): Promise<void>;
  }> {
    const clock = new ManualClock();
    const link = new ClockedLink(clock);
    const one = quorumOver([{ name: 'a', link }], { clock, claims: { lockTtlMs: 20_000 } });
    await clock.advance(3_000);
    assert.ok(one.voters[0]!.counted);
    return { clock, link, one, pass: async (ms) => await clock.advance(ms) };
  }

  test('a step forward: on hold for the longest lock, then it counts again', async () => {
    const { link, one, pass } = await rig();
    const { boot } = one.voters[0]!;
    link.aheadMs += 10_000;
    await pass(2_500);
    assert.notEqual(one.voters[0]!.boot, boot);
    const [status] = one.claims.voters;
    assert.equal(status?.state, 'held');
    assert.ok(status.leftMs! > lockHoldMs(20_000) - 3_000 && status.leftMs! <= lockHoldMs(20_000));
    assert.deepEqual(warnings(one, /clock/), [{ node: 'a', stepMs: 10_000 }]);
    await pass(lockHoldMs(20_000) + 2_000);
    assert.ok(one.voters[0]!.counted);
    await one[Symbol.asyncDispose]();
  });

  test('a step back: told, and it goes on counting, as no lock ends too soon', async () => {
    const { link, one, pass } = await rig();
    link.aheadMs -= 10_000;
    await pass(2_500);
    assert.ok(one.voters[0]!.counted);
    assert.deepEqual(warnings(one, /clock/), [{ node: 'a', stepMs: -10_000 }]);
    await one[Symbol.asyncDispose]();
  });

  test('less than a quarter of a second is no step', async () => {
    const { link, one, pass } = await rig();
    link.aheadMs += 200;
    await pass(2_500);
    link.aheadMs -= 200;
    await pass(2_500);
    assert.ok(one.voters[0]!.counted);
    assert.deepEqual(warnings(one, /clock/), []);
    await one[Symbol.asyncDispose]();
  });
});
