/** Records copied to a voter that lost its own, on real Redis servers, while everything else goes on or goes wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { keys } from '../../src/redis/codec.ts';
import { lockHoldMs } from '../../src/redis/items.ts';
import { Recovery, type RecoveryOptions } from '../../src/redis/recovery.ts';
import { onNode, writtenToFile } from '../support/keys.ts';
import { freshKey, keyOf, quorum, type Quorum } from '../support/quorum.ts';
import { fill, known, randomIds } from '../support/records.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const DAY = 86_400_000;
const lifeMs = 300;
const times = { lockTtlMs: lifeMs, unknownHoldMs: lifeMs, budgetMs: 2_000, voterTimeoutMs: 500 };
const full = process.env['HOOKONCE_TEST_FULL'] === '1';

const done = { status: 200, traceId: '', reply: undefined };
const counts = (voter: Quorum['voters'][number]): boolean => voter.eligible && voter.hold === '';

/** A gateway's claims, with recovery. */
function gateway(ports: readonly number[], recovery: Partial<RecoveryOptions> = {}): Quorum {
  const one = quorum(ports, { claims: times, firstStart: 'wait' });
  const options = {
    lifeMs,
    recoverAfterMs: 60_000,
    onMemoryLoss: 'recover',
    resyncRate: 20_000,
    token: `${Math.random()}`,
  } as const;
  const stack = new AsyncDisposableStack();
  stack.use(one);
  stack.use(new Recovery(one.voters, { ...options, ...recovery }, clock, one.events));
  return { ...one, [Symbol.asyncDispose]: async () => await stack.disposeAsync() };
}

interface Service extends AsyncDisposable {
  readonly nodes: readonly RedisServer[];
  readonly one: Quorum;
}

async function service(nodes: number, recovery: Partial<RecoveryOptions> = {}): Promise<Service> {
  const stack = new AsyncDisposableStack();
  const servers = await Promise.all(Array.from({ length: nodes }, async () => stack.use(await startRedisServer())));
  const one = stack.use(
    gateway(
      servers.map(({ port }) => port),
      recovery,
    ),
  );
  await allCount(one);
  return { nodes: servers, one, [Symbol.asyncDispose]: async () => await stack.disposeAsync() };
}

const allCount = async ({ voters }: Quorum, withinMs = 60_000): Promise<unknown> =>
  await until(clock, 'all voters to count', () => voters.every(counts) || undefined, withinMs);

async function restartedEmpty(node: RedisServer): Promise<void> {
  await node.kill();
  await node.start();
}

/** Resolves when the node has some of the records, but is far from all. */
const inTheMiddle = async (node: RedisServer, ids: readonly string[]): Promise<unknown> =>
  await until(clock, 'the first records to arrive', async () =>
    (await known(node, ids)) > ids.length / 20 ? true : undefined,
  );

test('records are copied at a bounded rate while deliveries go on, and a learner’s oks never count', async (t) => {
  const count = full ? 1_000_000 : 30_000;
  await using s = await service(3);
  const ids = randomIds(count);
  await fill(s.nodes, ids);
  const beganMs = clock.now();
  await restartedEmpty(s.nodes[0]!);
  const [learner] = s.one.voters;
  await until(clock, 'the voter to learn', () => learner!.hold === 'empty' || undefined);
  const deliver = async (): Promise<number> => {
    const startedMs = clock.now();
    const claim = await s.one.claims.claim(freshKey(), DAY);
    assert.ok(claim.kind === 'won');
    await s.one.claims.complete(claim.lease, done);
    const endedMs = clock.now();
    await clock.sleep(5);
    return endedMs - startedMs;
  };
  // Before its locks have run out, nothing is copied.
  const quietMs: number[] = [];
  while (clock.now() - beganMs < lockHoldMs(lifeMs) / 2) quietMs.push(await deliver());
  while ((await known(s.nodes[0]!, ids.slice(0, 1_000))) === 0) await clock.sleep(20);
  const tookMs: number[] = [];
  while (!counts(learner!)) tookMs.push(await deliver());
  // Two sources, at 20,000 a second each after the other.
  assert.ok(clock.now() - beganMs >= lockHoldMs(lifeMs) + (2 * count) / 20, 'not faster than was said');
  assert.equal(await known(s.nodes[0]!, ids), count);
  const quantile = (all: readonly number[], part: number): number =>
    all.toSorted((a, b) => a - b)[Math.floor(all.length * part)]!;
  const [p50Ms, p99Ms, quietP50Ms] = [quantile(tookMs, 0.5), quantile(tookMs, 0.99), quantile(quietMs, 0.5)];
  t.diagnostic(
    `claim and completion while ${count} records were copied: p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms of ${tookMs.length}; before, p50 ${quietP50Ms.toFixed(1)} ms`,
  );
  // The tail of a busy machine is its own; the long run is for an idle one.
  if (full) assert.ok(p99Ms < 50, `p99 ${p99Ms} ms`);
  else assert.ok(p50Ms < 4 * quietP50Ms + 5, `p50 ${p50Ms} ms, before ${quietP50Ms} ms`);
});

test('a learner that is started again in the middle begins anew, and counts only when it is whole', async () => {
  await using s = await service(3, { resyncRate: 1_000 });
  const ids = randomIds(2_000);
  await fill(s.nodes, ids);
  await restartedEmpty(s.nodes[0]!);
  await inTheMiddle(s.nodes[0]!, ids);
  assert.ok(!counts(s.one.voters[0]!));
  await restartedEmpty(s.nodes[0]!);
  await until(clock, 'the voter to learn', () => s.one.voters[0]!.hold === 'empty' || undefined);
  await allCount(s.one);
  assert.equal(await known(s.nodes[0]!, ids), 2_000);
});

for (const how of ['restarted empty', 'flushed'] as const) {
  test(`a source that is ${how} in the middle: the copy is begun anew from those that are whole`, async () => {
    await using s = await service(5, { resyncRate: 1_000 });
    const ids = randomIds(1_000);
    await fill(s.nodes, ids);
    await restartedEmpty(s.nodes[0]!);
    await inTheMiddle(s.nodes[0]!, ids);
    if (how === 'flushed') await onNode(s.nodes[1]!, async (redis) => await redis.flushall());
    else await restartedEmpty(s.nodes[1]!);
    await until(
      clock,
      'two voters to learn',
      () => s.one.voters.filter(({ hold }) => hold === 'empty').length === 2 || undefined,
    );
    await allCount(s.one);
    for (const node of s.nodes) assert.equal(await known(node, ids), 1_000);
    assert.deepEqual(s.one.events.of('memoryLost'), []);
  });
}

test('the last source is flushed while it is copied: the learner does not count with half of it', async () => {
  await using s = await service(3, { resyncRate: 1_000 });
  const ids = randomIds(1_000);
  await fill(s.nodes.slice(0, 2), ids);
  await restartedEmpty(s.nodes[0]!);
  await inTheMiddle(s.nodes[0]!, ids);
  await onNode(s.nodes[1]!, async (redis) => await redis.flushall());
  await until(
    clock,
    'two voters to learn',
    () => s.one.voters.filter(({ hold }) => hold !== '').length === 2 || undefined,
  );
  await clock.sleep(3_000);
  assert.ok(
    !counts(s.one.voters[0]!) && !counts(s.one.voters[1]!),
    'a majority has forgotten: nobody may count before recoverAfter',
  );
});

test('two gateways bring the same voter back: one of them copies, both count it', async () => {
  await using s = await service(3, { resyncRate: 1_000 });
  await using other = gateway(
    s.nodes.map(({ port }) => port),
    { resyncRate: 1_000 },
  );
  await allCount(other);
  const ids = randomIds(1_000);
  await fill(s.nodes, ids);
  await restartedEmpty(s.nodes[0]!);
  await inTheMiddle(s.nodes[0]!, ids);
  const right = keys.sync('ho', '0');
  const owners = new Set<string | null>();
  await onNode(s.nodes[0]!, async (redis) => {
    while (!counts(s.one.voters[0]!) && !counts(other.voters[0]!)) owners.add(await redis.get(right));
  });
  assert.equal(owners.size, 1);
  await Promise.all([allCount(s.one), allCount(other)]);
  assert.equal(await known(s.nodes[0]!, ids), 1_000);
});

test('what is copied: done wins, the higher attempt, the higher floor; and it lives as long as it had left', async () => {
  await using s = await service(3);
  const rows = [
    ['open', 'o2,0', 'o3,0', 'o3,0'],
    ['done', 'o2,0', 'd1,0,200,0,', 'd2,0,200,0,'],
    ['forgotten', 'o3,3', 'd3,0,200,0,', 'o3,3'],
    ['done-again', 'd4,3,201,0,', 'd3,0,200,0,', 'd4,3,201,0,'],
    ['only-one', '', 'd1,0,200,0,', 'd1,0,200,0,'],
  ] as const;
  const recordOf = (name: string): string => keys.record('ho', keyOf(name).id);
  for (const [at, node] of [s.nodes[1]!, s.nodes[2]!].entries()) {
    await onNode(node, async (redis) => {
      for (const row of rows) if (row[at + 1] !== '') await redis.set(recordOf(row[0]), row[at + 1]!, 'PX', 500_000);
    });
  }
  await restartedEmpty(s.nodes[0]!);
  await until(clock, 'the voter to learn', () => s.one.voters[0]!.hold === 'empty' || undefined);
  await allCount(s.one);
  await onNode(s.nodes[0]!, async (redis) => {
    for (const [name, , , expected] of rows) {
      assert.equal(await redis.get(recordOf(name)), expected, name);
      const leftMs = await redis.pttl(recordOf(name));
      assert.ok(leftMs > 450_000 && leftMs <= 500_000, `${name}: ${leftMs} ms`);
    }
  });
});

test('voters with an append-only file, restarted one after the other: each is held for the longest lock, and claims go on', async () => {
  await using stack = new AsyncDisposableStack();
  const nodes = await Promise.all(
    [0, 1, 2].map(async () => stack.use(await startRedisServer({ appendonly: 'everysec' }))),
  );
  const one = stack.use(gateway(nodes.map(({ port }) => port)));
  await allCount(one);
  let claims = 0;
  const claim = async (): Promise<void> => {
    const result = await one.claims.claim(freshKey(), DAY);
    assert.equal(result.kind, 'won');
    if (result.kind === 'won') await one.claims.complete(result.lease, done);
    claims += 1;
  };
  for (const [at, node] of nodes.entries()) {
    const voter = one.voters[at]!;
    await writtenToFile(node);
    await node.kill();
    await node.start();
    await until(clock, 'the hold', async () => {
      await claim();
      return voter.hold === 'locks' || undefined;
    });
    const heldMs = clock.now();
    await until(clock, 'the end of the hold', async () => {
      await claim();
      return counts(voter) || undefined;
    });
    assert.ok(clock.now() - heldMs < lockHoldMs(lifeMs) + 500, 'held for no longer than was said');
  }
  assert.ok(claims > 100);
  assert.deepEqual(one.events.of('memoryLost'), []);
});

test('what a voter lost of its last seconds in a power cut is told to it again', async () => {
  await using stack = new AsyncDisposableStack();
  const nodes = await Promise.all(
    [0, 1, 2].map(async () => stack.use(await startRedisServer({ appendonly: 'everysec' }))),
  );
  const proxy: TcpProxy = stack.use(await startTcpProxy(clock, nodes[0]!.port));
  const one = stack.use(gateway([proxy.port, nodes[1]!.port, nodes[2]!.port]));
  await allCount(one);
  for (const name of ['done', 'failed']) {
    const claim = await one.claims.claim(keyOf(name), DAY);
    assert.ok(claim.kind === 'won');
    if (name === 'done') await one.claims.complete(claim.lease, done);
    else await one.claims.release(claim.lease, true);
  }
  const records = ['done', 'failed'].map((name) => keys.record('ho', keyOf(name).id));
  await onNode(
    nodes[0]!,
    async (redis) =>
      void (await until(clock, 'the records', async () => (await redis.exists(...records)) === 2 || undefined)),
  );
  await writtenToFile(nodes[0]!);
  proxy.cut();
  await nodes[0]!.kill();
  await nodes[0]!.start();
  await onNode(nodes[0]!, async (redis) => await redis.del(...records));
  proxy.heal();
  await until(clock, 'the hold', () => one.voters[0]!.hold === 'locks' || undefined);
  await onNode(nodes[0]!, async (redis) => {
    const values = await until(clock, 'both records', async () => {
      const found = await redis.mget(...records);
      return found.every((value) => value !== null) ? found : undefined;
    });
    assert.match(values[0]!, /^d1,0,200/);
    assert.equal(values[1], 'o1,0');
  });
});
