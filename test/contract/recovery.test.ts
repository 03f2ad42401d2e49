/** Voters that forget, on real Redis servers: what the others know is taught to them, and the service comes back by itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import type { Lease } from '../../src/core/ports.ts';
import { Recovery, type RecoveryOptions } from '../../src/redis/recovery.ts';
import { keyOf, quorum, type Quorum } from '../support/quorum.ts';

const clock = systemClock;
const DAY = 86_400_000;
const claims = {
  lockTtlMs: 300,
  unknownHoldMs: 300,
  budgetMs: 2_000,
  voterTimeoutMs: 500,
  maxHoldMs: 60_000,
  retentionMs: DAY,
};

interface Service extends Quorum {
  readonly nodes: readonly RedisServer[];
}

async function service(recovery: Partial<RecoveryOptions> = {}, nodes = 3): Promise<Service> {
  const stack = new AsyncDisposableStack();
  const servers = await Promise.all(Array.from({ length: nodes }, async () => stack.use(await startRedisServer())));
  const made = stack.use(
    quorum(
      servers.map(({ port }) => port),
      { claims, firstStart: 'wait' },
    ),
  );
  stack.use(
    new Recovery(
      made.voters,
      { lifeMs: 300, recoverAfterMs: 500, onMemoryLoss: 'recover', resyncRate: 20_000, token: 'me', ...recovery },
      clock,
      made.events,
    ),
  );
  const up = { ...made, nodes: servers, [Symbol.asyncDispose]: async () => await stack.disposeAsync() };
  await counting(up, nodes);
  return up;
}

const counting = async (s: Service, voters: number): Promise<unknown> =>
  await until(
    clock,
    `${voters} voters that count`,
    async () => s.voters.filter((voter) => voter.eligible && voter.hold === '').length === voters || undefined,
  );

async function won(s: Service, name: string): Promise<Lease> {
  const claim = await s.claims.claim(keyOf(name), DAY);
  assert.equal(claim.kind, 'won', JSON.stringify(claim));
  return (claim as { lease: Lease }).lease;
}

async function done(s: Service, name: string): Promise<void> {
  await s.claims.complete(await won(s, name), { status: 200, traceId: '', reply: undefined });
}

const forgets = async (node: RedisServer): Promise<void> => {
  await node.kill();
  await node.start();
};

test('a voter that restarted empty does not count until it has learnt the others’ records', async () => {
  await using s = await service();
  for (let n = 0; n < 500; n += 1) await done(s, `old-${n}`);
  const failed = await won(s, 'failed');
  await s.claims.release(failed, true);
  await forgets(s.nodes[0]!);
  await until(clock, 'the voter to learn', async () => s.voters[0]!.hold === 'empty' || undefined);
  await counting(s, 3);
  // With one of its teachers gone, a quorum of the pupil and one other must know everything.
  await s.nodes[1]!.kill();
  for (let n = 0; n < 500; n += 1) assert.equal((await s.claims.claim(keyOf(`old-${n}`), DAY)).kind, 'done');
  const again = await won(s, 'failed');
  assert.equal(again.attempt, 2);
  assert.equal(again.memorySinceMs, undefined);
});

test('all voters restarted empty: the service is back by itself once the locks have run out', async () => {
  await using s = await service();
  await done(s, 'a');
  await Promise.all(s.nodes.map(forgets));
  await until(
    clock,
    'the voters to be on hold',
    async () => s.voters.every((voter) => voter.hold === 'empty') || undefined,
  );
  assert.equal((await s.claims.claim(keyOf('b'), DAY)).kind, 'unavailable');
  await counting(s, 3);
  // What this gateway wrote in the last seconds it has told the voters again.
  assert.equal((await s.claims.claim(keyOf('a'), DAY)).kind, 'done');
  const { attempt, memorySinceMs } = await won(s, 'c');
  assert.equal(attempt, 1);
  assert.ok(memorySinceMs !== undefined, 'what was written before that is gone');
  assert.equal(s.events.of('memoryLost').length, 3);
});

test('a majority forgot: the service goes on after a while, and says since when memory is whole', async () => {
  await using s = await service();
  await done(s, 'a');
  await done(s, 'b');
  const beforeMs = clock.wall();
  await Promise.all([s.nodes[0]!, s.nodes[1]!].map(forgets));
  await until(
    clock,
    'two voters to learn',
    async () => s.voters.filter((voter) => voter.hold === 'empty').length === 2 || undefined,
  );
  await counting(s, 3);
  // What the third still knew is known again to all; nothing was lost here, but that cannot be known.
  assert.equal((await s.claims.claim(keyOf('a'), DAY)).kind, 'done');
  const { memorySinceMs } = await won(s, 'c');
  assert.ok(memorySinceMs !== undefined && memorySinceMs >= beforeMs && memorySinceMs <= clock.wall());
  assert.ok(s.events.of('memoryLost').length > 0);
});

test('a majority forgot, and onMemoryLoss is refuse: nothing is claimed', async () => {
  await using s = await service({ onMemoryLoss: 'refuse', recoverAfterMs: 0 });
  await done(s, 'a');
  await Promise.all([s.nodes[0]!, s.nodes[1]!].map(forgets));
  await until(
    clock,
    'two voters to learn',
    async () => s.voters.filter((voter) => voter.hold === 'empty').length === 2 || undefined,
  );
  await clock.sleep(2_500);
  assert.equal((await s.claims.claim(keyOf('b'), DAY)).kind, 'unavailable');
});

test('a single voter that forgot counts again once its locks have run out', async () => {
  await using s = await service({}, 1);
  await done(s, 'a');
  await forgets(s.nodes[0]!);
  await until(clock, 'the voter to be on hold', async () => s.voters[0]!.hold !== '' || undefined);
  await counting(s, 1);
  assert.equal((await won(s, 'b')).attempt, 1);
});
