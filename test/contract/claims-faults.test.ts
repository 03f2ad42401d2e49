/** Claims on three real Redis of which some are frozen, killed or out of memory: nobody waits, nothing is granted twice, nothing needs a restart. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import type { Completion } from '../../src/core/ports.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { onNode, writtenToFile } from '../support/keys.ts';
import { countedVoters, freshKey, quorum, type Quorum } from '../support/quorum.ts';

const retentionMs = 600_000;
const claims = { lockTtlMs: 2_000, unknownHoldMs: 2_000, budgetMs: 900, voterTimeoutMs: 300 };
const ok: Completion = { status: 200, traceId: '', reply: undefined };

interface Three extends AsyncDisposable {
  readonly nodes: readonly [RedisServer, RedisServer, RedisServer];
  readonly one: Quorum;
}

async function three(options: Parameters<typeof startRedisServer>[0] = {}): Promise<Three> {
  await using starting = new AsyncDisposableStack();
  const nodes = (await Promise.all(
    [1, 2, 3].map(async () => starting.use(await startRedisServer(options))),
  )) as unknown as Three['nodes'];
  const one = starting.use(
    quorum(
      nodes.map(({ port }) => port),
      { claims },
    ),
  );
  await countedVoters(one, 3);
  const stack = starting.move();
  return { nodes, one, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

/** One event from the claim to its copy, and how long the claim took. */
async function wholeLife(one: Quorum): Promise<number> {
  const key = freshKey();
  const begun = clock.now();
  const result = await one.claims.claim(key, retentionMs);
  const tookMs = clock.now() - begun;
  assert.ok(result.kind === 'won' && result.lease.attempt === 1, result.kind);
  await one.claims.complete(result.lease, ok);
  assert.equal((await one.claims.claim(key, retentionMs)).kind, 'done');
  return tookMs;
}

async function unavailable(one: Quorum): Promise<void> {
  const begun = clock.now();
  assert.equal((await one.claims.claim(freshKey(), retentionMs)).kind, 'unavailable');
  assert.ok(clock.now() - begun < claims.budgetMs + 500, `${clock.now() - begun} ms`);
}

suite('claims in trouble', { concurrency: true }, () => {
  test('B45: one frozen: everything goes on within the budget; two: unavailable; thawed: as before, without a restart', async () => {
    await using cluster = await three();
    const { nodes, one } = cluster;
    nodes[0].freeze();
    for (let n = 0; n < 20; n += 1) assert.ok((await wholeLife(one)) < claims.budgetMs);
    const silent = (): boolean =>
      one.events.of('voterError').some(([node, why]) => node.endsWith(`:${nodes[0].port}`) && why === 'timeout');
    await one.events.until(() => silent() || undefined);
    nodes[1].freeze();
    await unavailable(one);
    await unavailable(one);
    assert.equal((await one.claims.peek(freshKey())).kind, 'unavailable');
    for (const node of [nodes[0], nodes[1]]) node.thaw();
    await countedVoters(one, 3);
    await wholeLife(one);
    // What frozen servers did when they woke up has been given back, or ends with its lock.
    await until(clock, 'no lock anywhere', async () => (await locks(nodes)) === 0 || undefined);
  });

  test('one killed: everything goes on; two: unavailable; started again: on hold, then as before', async () => {
    await using cluster = await three({ appendonly: 'everysec' });
    const { nodes, one } = cluster;
    const key = freshKey();
    const first = await one.claims.claim(key, retentionMs);
    assert.ok(first.kind === 'won');
    await one.claims.complete(first.lease, ok);
    await Promise.all(nodes.map(writtenToFile));
    await nodes[0].kill();
    await wholeLife(one);
    await nodes[1].kill();
    await unavailable(one);
    for (const node of [nodes[0], nodes[1]]) await node.start();
    await until(clock, 'what was done to be remembered', async () =>
      (await one.claims.claim(key, retentionMs)).kind === 'done' ? true : undefined,
    );
    await one.events.until(() => one.voters.every((voter) => voter.eligible) || undefined);
    assert.deepEqual(
      one.voters.map((voter) => voter.hold),
      ['locks', 'locks', ''],
    );
    await unavailable(one);
    await until(clock, 'the holds to be over', async () =>
      (await one.claims.claim(freshKey(), retentionMs)).kind === 'won' ? true : undefined,
    );
  });

  test('an owner whose second voter was killed keeps its event; its completion reaches a quorum later', async () => {
    await using cluster = await three({ appendonly: 'everysec' });
    const { nodes, one } = cluster;
    const key = freshKey();
    const result = await one.claims.claim(key, retentionMs);
    assert.ok(result.kind === 'won');
    await Promise.all(nodes.map(writtenToFile));
    await Promise.all([nodes[0].kill(), nodes[1].kill()]);
    assert.equal(await one.claims.extend(result.lease), false);
    await one.claims.complete(result.lease, ok);
    assert.deepEqual(one.events.of('completionPending'), [[1]]);
    for (const node of [nodes[0], nodes[1]]) await node.start();
    await one.claims.settled();
    assert.deepEqual(one.events.of('completionPending'), [[1], [-1]]);
    assert.deepEqual(one.events.of('completionGivenUp'), []);
    assert.equal((await one.claims.claim(key, retentionMs)).kind, 'done');
  });

  test('B52: one out of memory: everything goes on; two: unavailable, told as oom; then as before', async () => {
    await using cluster = await three();
    const { nodes, one } = cluster;
    await maxmemory(nodes[0], '1');
    await wholeLife(one);
    await maxmemory(nodes[1], '1');
    await unavailable(one);
    await one.events.until(() => one.events.of('voterError').some(([, why]) => why === 'oom') || undefined);
    for (const node of nodes) await maxmemory(node, '0');
    await wholeLife(one);
  });

  test('B50: one read-only: everything goes on; two: unavailable, told as readonly; then as before', async () => {
    await using cluster = await three();
    const { nodes, one } = cluster;
    await onNode(nodes[0], async (redis) => await redis.replicaof('127.0.0.1', '1'));
    await wholeLife(one);
    await onNode(nodes[1], async (redis) => await redis.replicaof('127.0.0.1', '1'));
    await unavailable(one);
    await one.events.until(() => one.events.of('voterError').some(([, why]) => why === 'readonly') || undefined);
    for (const node of nodes) await onNode(node, async (redis) => await redis.replicaof('NO', 'ONE'));
    await wholeLife(one);
  });

  test('B49: SCRIPT FLUSH on all three in the middle of an attempt: extended, completed, claimed again, one NOSCRIPT each', async () => {
    await using cluster = await three();
    const { nodes, one } = cluster;
    const key = freshKey();
    const result = await one.claims.claim(key, retentionMs);
    assert.ok(result.kind === 'won');
    for (const node of nodes) await onNode(node, async (redis) => await redis.script('FLUSH'));
    assert.equal(await one.claims.extend(result.lease), true);
    await one.claims.release(result.lease, true);
    const again = await one.claims.claim(key, retentionMs);
    assert.ok(again.kind === 'won' && again.lease.attempt === 2);
    await one.claims.complete(again.lease, ok);
    await one.claims.settled();
    await until(clock, 'no lock anywhere', async () => (await locks(nodes)) === 0 || undefined);
    assert.equal(one.events.of('voterError').filter(([, why]) => why === 'noscript').length, 3);
  });

  test('closed with a completion and releases under way: they are given up, and it ends', async () => {
    await using cluster = await three();
    const { nodes, one } = cluster;
    const [done, failed] = await Promise.all([
      one.claims.claim(freshKey(), retentionMs),
      one.claims.claim(freshKey(), retentionMs),
    ]);
    assert.ok(done.kind === 'won' && failed.kind === 'won');
    nodes[0].freeze();
    nodes[1].freeze();
    await one.claims.complete(done.lease, ok);
    await one.claims.release(failed.lease, false);
    const begun = clock.now();
    await one[Symbol.asyncDispose]();
    assert.ok(clock.now() - begun < 2_000);
    assert.deepEqual(one.events.of('completionPending'), [[1], [-1]]);
    for (const node of [nodes[0], nodes[1]]) node.thaw();
  });
});

async function locks(nodes: Three['nodes']): Promise<number> {
  const each = await Promise.all(
    nodes.map(async (node) => await onNode(node, async (redis) => await redis.keys('*:l'))),
  );
  return each.flat().length;
}

async function maxmemory(node: RedisServer, bytes: string): Promise<void> {
  await onNode(node, async (redis) => await redis.config('SET', 'maxmemory', bytes));
}
