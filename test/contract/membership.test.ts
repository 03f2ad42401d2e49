/** The set of voters changes, on real servers: three old ones, three new ones, and gateways that know the one, both, or the other. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { lockHoldMs } from '../../src/redis/items.ts';
import { membershipOf } from '../../src/redis/membership.ts';
import { Recovery } from '../../src/redis/recovery.ts';
import { freshKey, keyOf, linksTo, quorumOver, type Quorum } from '../support/quorum.ts';

const DAY = 86_400_000;
const lifeMs = 1_500;
/** Patient enough for a busy machine. */
const times = { lockTtlMs: lifeMs, unknownHoldMs: lifeMs, budgetMs: 10_000, voterTimeoutMs: 1_500, maxHoldMs: 60_000 };
const completion = { status: 200, traceId: '', reply: undefined };

const namesOf = (servers: readonly RedisServer[]): string[] => servers.map(({ port }) => `127.0.0.1:${port}`);

/** As a gateway with these settings has them. */
function gateway(nodes: readonly RedisServer[], previous: readonly RedisServer[] = []): Quorum {
  const membership = membershipOf('tests', namesOf(nodes), namesOf(previous));
  const all = [...nodes, ...previous.filter((server) => !nodes.includes(server))];
  const links = linksTo(
    all.map(({ port }) => port),
    times.voterTimeoutMs,
  );
  const made = quorumOver(links, { claims: times, membership, firstStart: previous.length > 0 ? 'wait' : 'trust' });
  const recovery = new Recovery(
    made.voters,
    { lifeMs, recoverAfterMs: 60_000, onMemoryLoss: 'recover', resyncRate: 20_000, token: String(clock.random()) },
    clock,
    made.events,
    membership,
  );
  return {
    ...made,
    [Symbol.asyncDispose]: async () => {
      await recovery[Symbol.asyncDispose]();
      await made[Symbol.asyncDispose]();
    },
  };
}

const available = async (one: Quorum): Promise<unknown> =>
  await until(clock, 'a majority', () => one.claims.available() || undefined);
const counting = async (one: Quorum, count: number): Promise<unknown> =>
  await until(
    clock,
    `${count} voters that count`,
    () => one.voters.filter((voter) => voter.counted).length === count || undefined,
    40_000,
  );
const servers = async (count: number, stack: AsyncDisposableStack): Promise<RedisServer[]> =>
  await Promise.all(Array.from({ length: count }, async () => stack.use(await startRedisServer())));

async function handled(one: Quorum, name: string): Promise<void> {
  const claim = await one.claims.claim(keyOf(name), DAY);
  assert.ok(claim.kind === 'won', `${name}: ${claim.kind}`);
  assert.equal(claim.lease.attempt, 1);
  await one.claims.complete(claim.lease, completion);
}

/** All of them claim the same new event at once, many times: one wins. */
async function contend(claimers: readonly Quorum[], rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    const key = freshKey();
    const results = await Promise.all(claimers.map(async ({ claims }) => await claims.claim(key, DAY)));
    const kinds = results.map(({ kind }) => kind);
    assert.equal(kinds.filter((kind) => kind === 'won').length, 1, kinds.join());
    assert.ok(
      kinds.every((kind) => kind === 'won' || kind === 'held'),
      kinds.join(),
    );
  }
}

test('from three voters to three others: at no time can two win one event, none is forgotten, none is refused', async () => {
  await using stack = new AsyncDisposableStack();
  const [old, fresh] = [await servers(3, stack), await servers(3, stack)];
  const before = stack.use(gateway(old));
  await counting(before, 3);
  for (let n = 0; n < 100; n += 1) await handled(before, `early-${n}`);

  // The first gateways that know both lists: they need not wait, though the new voters know nothing yet.
  const [during, beside] = [stack.use(gateway(fresh, old)), stack.use(gateway(fresh, old))];
  await Promise.all([available(during), available(beside)]);
  assert.ok(during.voters.slice(0, 3).every((voter) => voter.learns));
  assert.equal((await during.claims.claim(keyOf('early-7'), DAY)).kind, 'done');
  for (let n = 0; n < 50; n += 1) await handled(during, `both-${n}`);
  await contend([before, during, beside], 50);

  // As long as the old gateway is there, the new voters miss what it does, and may not count.
  await clock.sleep(lockHoldMs(lifeMs) + 1_500);
  assert.ok(during.voters.slice(0, 3).every((voter) => voter.learns));
  for (let n = 0; n < 50; n += 1) await handled(before, `late-${n}`);
  await before[Symbol.asyncDispose]();
  await counting(during, 6);
  await contend([during, beside], 20);

  // The new list alone knows everything.
  const after = stack.use(gateway(fresh));
  await counting(after, 3);
  for (const [name, count] of Object.entries({ early: 100, both: 50, late: 50 })) {
    for (let n = 0; n < count; n += 1)
      assert.equal((await after.claims.claim(keyOf(`${name}-${n}`), DAY)).kind, 'done', `${name}-${n}`);
  }
  await contend([during, after, beside], 50);
  for (let n = 0; n < 20; n += 1) await handled(after, `new-${n}`);
  assert.equal((await during.claims.claim(keyOf('new-3'), DAY)).kind, 'done');
  for (const one of [during, beside, after]) assert.deepEqual(one.events.of('membershipConflict'), []);

  // One of the old gateways comes back: those that know both lists go on with it, those that know only the new one must not.
  const back = stack.use(gateway(old));
  await available(back);
  await until(clock, 'the new voters to learn again', () => !after.claims.available() || undefined);
  assert.equal((await after.claims.claim(freshKey(), DAY)).kind, 'unavailable');
  await contend([back, during, beside], 20);
  assert.ok(
    during.events.of('warn').some(([message]) => message.startsWith('a gateway without redis.previous is back')),
  );
});

test('one voter of three is replaced: the new one counts only when nobody writes to the old list alone', async () => {
  await using stack = new AsyncDisposableStack();
  const [a, b, c, d] = (await servers(4, stack)) as [RedisServer, RedisServer, RedisServer, RedisServer];
  const before = stack.use(gateway([a, b, c]));
  await counting(before, 3);
  const during = stack.use(gateway([a, b, d], [a, b, c]));
  await available(during);
  await contend([before, during], 30);
  await clock.sleep(lockHoldMs(lifeMs) + 1_500);
  assert.ok(during.voters[2]!.learns);
  // On b and c alone, the last of all.
  await a.kill();
  await until(clock, 'a to be missed', () => before.voters.every((voter, n) => voter.eligible === n > 0) || undefined);
  for (let n = 0; n < 20; n += 1) await handled(before, `late-${n}`);
  await before[Symbol.asyncDispose]();
  await a.start();
  await counting(during, 4);
  // With b gone, a and d are the majority of the new list.
  const after = stack.use(gateway([a, b, d]));
  await counting(after, 3);
  await b.kill();
  for (let n = 0; n < 20; n += 1) assert.equal((await after.claims.claim(keyOf(`late-${n}`), DAY)).kind, 'done');
});

test('a gateway with other voters on some of the same servers is reported, by each of the two', async () => {
  await using stack = new AsyncDisposableStack();
  const [a, b, c, d] = (await servers(4, stack)) as [RedisServer, RedisServer, RedisServer, RedisServer];
  const [one, other] = [stack.use(gateway([a, b, c])), stack.use(gateway([b, c, d]))];
  await Promise.all(
    [one, other].map(async (each) => await each.events.until(() => each.events.of('membershipConflict')[0])),
  );
  assert.equal(one.events.of('warn').filter(([message]) => message.includes('other redis.nodes')).length, 1);
});
