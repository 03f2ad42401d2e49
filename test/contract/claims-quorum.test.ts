/** Claims on three real Redis, whose state the test writes and whose links it holds up: each rule of deciding, confirming and settling. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, suite, test } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock as clock } from '../../src/clock.ts';
import type { DeliveryKey } from '../../src/core/delivery.ts';
import type { Completion, Lease } from '../../src/core/ports.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { keys } from '../../src/redis/codec.ts';
import { failing, gate, InterceptedLink } from '../support/intercepted-link.ts';
import { countedVoters, freshKey, linksTo, patient, quorumOver, type Quorum } from '../support/quorum.ts';

const retentionMs = 600_000;
const ok: Completion = { status: 200, traceId: '', reply: undefined };

suite('a quorum of three', () => {
  let servers: readonly RedisServer[];
  let redis: readonly [Redis, Redis, Redis];
  before(async () => {
    servers = await Promise.all([1, 2, 3].map(async () => await startRedisServer()));
    redis = servers.map(({ url }) => new Redis(url)) as unknown as typeof redis;
  });
  after(async () => {
    for (const one of redis) one.disconnect();
    for (const server of servers) await server[Symbol.asyncDispose]();
  });

  let links: readonly [InterceptedLink, InterceptedLink, InterceptedLink];
  let one: Quorum;
  beforeEach(async () => {
    await Promise.all(redis.map(async (each) => await each.flushall()));
    const open = linksTo(
      servers.map(({ port }) => port),
      patient.voterTimeoutMs,
    );
    links = open.map(({ link }) => new InterceptedLink(link)) as unknown as typeof links;
    one = quorumOver(open.map(({ name }, index) => ({ name, link: links[index]! })));
    await countedVoters(one, 3);
  });

  /** A test with a key of its own; whatever it held up is let go before the claims are closed. */
  function rule(name: string, run: (key: DeliveryKey) => Promise<void>): void {
    test(name, async () => {
      try {
        await run(freshKey());
      } finally {
        for (const link of links) link.before = link.after = () => {};
        await one[Symbol.asyncDispose]();
      }
    });
  }

  async function lock(index: number, key: DeliveryKey): Promise<string | null> {
    return await redis[index]!.get(keys.lock('ho', key.id));
  }
  async function record(index: number, key: DeliveryKey): Promise<string | null> {
    return await redis[index]!.get(keys.record('ho', key.id));
  }
  async function write(index: number, key: DeliveryKey, state: { lock?: string; record?: string }): Promise<void> {
    if (state.lock !== undefined) await redis[index]!.set(keys.lock('ho', key.id), state.lock, 'PX', 60_000);
    if (state.record !== undefined) await redis[index]!.set(keys.record('ho', key.id), state.record, 'PX', 60_000);
  }
  async function everywhere(what: string, look: (index: number) => Promise<boolean>): Promise<void> {
    await until(clock, what, async () => ((await Promise.all([0, 1, 2].map(look))).every(Boolean) ? true : undefined));
  }
  async function won(key: DeliveryKey): Promise<Lease> {
    const result = await one.claims.claim(key, retentionMs);
    assert.ok(result.kind === 'won', result.kind);
    return result.lease;
  }
  async function kind(key: DeliveryKey): Promise<string> {
    return (await one.claims.claim(key, retentionMs)).kind;
  }

  rule('one done record is proof of a duplicate, and is copied to the voters that had none', async (key) => {
    await write(1, key, { record: 'd4,0,202,0,,' });
    const last = gate('claim');
    links[2].before = last.hook;
    links[1].after = last.open;
    const result = await one.claims.claim(key, retentionMs);
    assert.ok(result.kind === 'done' && result.done.status === 202);
    await everywhere(
      'the record is everywhere, and no lock',
      async (index) => (await record(index, key)) === 'd4,0,202,0,,' && (await lock(index, key)) === null,
    );
    for (const each of redis)
      assert.ok((await each.pttl(keys.record('ho', key.id))) <= 60_000, 'with the life that it had left');
  });

  rule('a done record at or below a floor that any voter shows votes for nobody', async (key) => {
    await write(0, key, { record: 'd1,0,200,0,,' });
    for (const index of [1, 2]) await write(index, key, { record: 'o1,1' });
    assert.equal((await won(key)).attempt, 2);
  });

  rule('held by one token on a quorum: our minority is given back, its attempt too', async (key) => {
    for (const index of [0, 1]) await write(index, key, { lock: '1 B 1 ck', record: 'o1,0' });
    const result = await one.claims.claim(key, retentionMs);
    assert.ok(result.kind === 'held' && !result.split && result.leftMs > 50_000);
    await one.claims.settled();
    assert.deepEqual([await lock(2, key), await record(2, key)], [null, null]);
    assert.deepEqual([await lock(0, key), await record(0, key)], ['1 B 1 ck', 'o1,0']);
    assert.deepEqual(one.events.of('lockFailed'), [['held']]);
  });

  rule(
    'B54: votes that nobody can win are tried again with fresh tokens, and won when the others are gone',
    async (key) => {
      await write(0, key, { lock: '1 B 1 ck', record: 'o1,0' });
      await write(1, key, { lock: '1 C 1 ck', record: 'o1,0' });
      const tokens = new Set<string>();
      links[2].before = (batch) => {
        for (const item of batch) if (item.op === 'claim') tokens.add(item.token);
      };
      const claim = one.claims.claim(key, retentionMs);
      await until(clock, 'three rounds', () => (tokens.size >= 3 ? true : undefined));
      for (const index of [0, 1]) await redis[index]!.del(keys.lock('ho', key.id), keys.record('ho', key.id));
      const result = await claim;
      assert.ok(result.kind === 'won');
      assert.equal(result.lease.attempt, 1, 'no byte was sent in all these rounds');
    },
  );

  rule(
    'an attempt above 1 is confirmed: its number is on every voter before anything can be forwarded',
    async (key) => {
      for (const index of [0, 1]) await write(index, key, { record: 'o3,0' });
      assert.equal((await won(key)).attempt, 4);
      await everywhere('attempt 4', async (index) => (await record(index, key)) === 'o4,0');
    },
  );

  rule('a completion that the claim ran past is seen by the confirmation, and repaired', async (key) => {
    for (const index of [0, 1, 2]) await write(index, key, { record: 'o1,0' });
    for (const index of [1, 2] as const) {
      links[index].before = async (batch) => {
        if (batch.some((item) => item.op === 'confirm')) await write(index, key, { record: 'd1,0,201,0,,' });
      };
    }
    const result = await one.claims.claim(key, retentionMs);
    assert.ok(result.kind === 'done' && result.done.status === 201, result.kind);
    await everywhere(
      'the record is everywhere, and no lock',
      async (index) => (await record(index, key))?.endsWith(',0,201,0,,') === true && (await lock(index, key)) === null,
    );
  });

  rule('a claim whose lock is gone when it confirms is not won with it', async (key) => {
    for (const index of [0, 1, 2]) await write(index, key, { record: 'o1,0' });
    for (const index of [0, 1] as const) {
      links[index].before = async (batch) => {
        if (batch.some((item) => item.op === 'confirm')) await write(index, key, { lock: '1 B 2 ck' });
      };
    }
    assert.equal(await kind(key), 'held');
    await one.claims.settled();
    assert.equal(await lock(2, key), null);
  });

  rule(
    'a quorum that comes too late is not won, but tried again: too little of the lock would be left to begin',
    async (key) => {
      const lockTtlMs = 900;
      const slow = linksTo(
        servers.map(({ port }) => port),
        patient.voterTimeoutMs,
      ).map(({ name, link }) => ({ name, link: new InterceptedLink(link) }));
      await using short = quorumOver(slow, { claims: { lockTtlMs } });
      await countedVoters(short, 3);
      const held = gate('claim');
      for (const { link } of slow) link.after = held.hook;
      const claim = short.claims.claim(key, retentionMs);
      await held.reached;
      const begun = clock.now();
      await until(clock, 'the last third of the lock', () =>
        clock.now() - begun > (2 / 3) * lockTtlMs ? true : undefined,
      );
      held.open();
      const result = await claim;
      assert.ok(result.kind === 'won' && result.lease.mayStart());
      assert.equal(result.lease.attempt, 1, 'what was granted too late was taken back');
      assert.deepEqual(short.events.of('lockFailed')[0], ['expired']);
    },
  );

  rule('a grant that comes after the decision is given back', async (key) => {
    for (const index of [0, 1]) await write(index, key, { lock: '1 B 1 ck', record: 'o1,0' });
    const slow = gate('claim');
    links[2].before = slow.hook;
    assert.equal(await kind(key), 'held');
    slow.open();
    await one.claims.settled();
    assert.deepEqual([await lock(2, key), await record(2, key)], [null, null]);
  });

  rule('a grant whose answer was lost is given back', async (key) => {
    for (const index of [0, 1]) await write(index, key, { lock: '1 B 1 ck', record: 'o1,0' });
    links[2].after = failing('claim');
    const last = gate('claim');
    links[1].after = last.hook;
    const claim = kind(key);
    await one.events.until(() => one.events.of('voterError').some(([, why]) => why === 'disconnected') || undefined);
    last.open();
    assert.equal(await claim, 'held');
    await one.claims.settled();
    assert.deepEqual([await lock(2, key), await record(2, key)], [null, null]);
  });

  rule('a release that gets lost is repeated until it is answered', async (key) => {
    const lease = await won(key);
    let lost = 0;
    links[0].before = (batch) => {
      if (!batch.some((item) => item.op === 'release') || lost === 2) return;
      lost += 1;
      failing('release')(batch);
    };
    await one.claims.release(lease, false);
    assert.notEqual(await lock(0, key), null);
    await one.claims.settled();
    assert.deepEqual([lost, await lock(0, key), await record(0, key)], [2, null, null]);
  });

  rule('a completion goes on until a quorum has it, and the lock is kept meanwhile', async (key) => {
    const lease = await won(key);
    for (const index of [0, 1] as const) links[index].before = failing('complete');
    await one.claims.complete(lease, ok);
    assert.deepEqual(one.events.of('completionPending'), [[1]]);
    const begun = clock.now();
    await until(clock, 'more than one life of the lock', () =>
      clock.now() - begun > patient.lockTtlMs + 500 ? true : undefined,
    );
    for (const index of [0, 1]) assert.match((await lock(index, key)) ?? 'no lock', /^1 \w+ 1 ck$/);
    assert.match((await record(2, key)) ?? '', /^d1,0,200/);
    links[0].before = () => {};
    await one.claims.settled();
    assert.deepEqual(one.events.of('completionPending'), [[1], [-1]]);
    assert.deepEqual([await lock(0, key), await record(0, key)], [null, await record(2, key)]);
  });

  rule('a completion counts only while the voter that has it has not started anew', async (key) => {
    const lease = await won(key);
    links[1].before = links[2].before = failing('complete');
    await one.claims.complete(lease, ok);
    assert.match((await record(0, key)) ?? '', /^d1,0,200/);
    await redis[0].flushall();
    await until(clock, 'it is written again', async () => ((await record(0, key))?.startsWith('d') ? true : undefined));
    links[1].before = () => {};
    await until(clock, 'the second has it', async () => ((await record(1, key))?.startsWith('d') ? true : undefined));
    const told = one.events.of('voterCommand').length;
    await until(clock, 'two more rounds', () => (one.events.of('voterCommand').length > told + 6 ? true : undefined));
    assert.deepEqual(one.events.of('completionPending'), [[1]], 'the first is on hold, and does not count');
    links[2].before = () => {};
    await one.claims.settled();
    assert.deepEqual(one.events.of('completionPending'), [[1], [-1]]);
  });

  rule('a completion that was forgotten meanwhile ends, and writes nothing', async (key) => {
    const lease = await won(key);
    for (const index of [0, 1, 2]) await write(index, key, { record: 'o1,1' });
    await one.claims.complete(lease, ok);
    await one.claims.settled();
    assert.deepEqual(one.events.of('completionGivenUp'), [[key.id, 'forgotten']]);
    for (const index of [0, 1, 2]) assert.deepEqual([await lock(index, key), await record(index, key)], [null, 'o1,1']);
  });

  rule('a beat that reached a quorum puts the lock back where it was lost; nothing of it counts there', async (key) => {
    const lease = await won(key);
    await redis[2].del(keys.lock('ho', key.id), keys.record('ho', key.id));
    assert.equal(await one.claims.extend(lease), true);
    await until(clock, 'the lock is back', async () => (await lock(2, key)) ?? undefined);
    assert.match((await lock(2, key))!, /^1 \w+ 0 nk$/);
    assert.equal(await record(2, key), 'o1,0');
    await redis[1].del(keys.lock('ho', key.id));
    assert.equal(await one.claims.extend(lease), true, 'the one that was put back holds others off like the rest');
  });

  rule('a beat without a quorum puts nothing back', async (key) => {
    const lease = await won(key);
    for (const index of [1, 2]) await redis[index]!.del(keys.lock('ho', key.id));
    const validMs = lease.validForMs();
    assert.equal(await one.claims.extend(lease), false);
    assert.ok(lease.validForMs() <= validMs);
    await one.claims.settled();
    for (const index of [1, 2]) assert.equal(await lock(index, key), null);
  });

  rule('a lock is not put back by a beat that the release has overtaken', async (key) => {
    const lease = await won(key);
    await redis[2].del(keys.lock('ho', key.id));
    const slow = gate('extend');
    links[2].after = slow.hook;
    assert.equal(await one.claims.extend(lease), true);
    const released = one.claims.release(lease, true);
    slow.open();
    await released;
    await one.claims.settled();
    assert.equal(await lock(2, key), null);
    assert.equal((await won(key)).attempt, 2);
  });

  rule('left: flagged unknown on every voter, with what is left of unknownHold', async (key) => {
    await one.claims.leave(await won(key));
    for (const index of [0, 1, 2]) {
      assert.match((await lock(index, key)) ?? '', /^1 \w+ 1 cu$/);
      assert.ok((await redis[index]!.pttl(keys.lock('ho', key.id))) <= patient.unknownHoldMs);
    }
  });

  rule('voters on hold: one of three does not matter, with two there is no quorum', async (key) => {
    await redis[0].set(keys.hold('ho', '0'), 'locks', 'PX', 60_000);
    await one.claims.complete(await won(key), ok);
    assert.match((await record(0, key)) ?? '', /^d1/, 'written on it all the same');
    await redis[1].set(keys.hold('ho', '0'), 'locks', 'PX', 60_000);
    const next = freshKey();
    assert.equal(await kind(next), 'unavailable');
    assert.equal((await one.claims.peek(next)).kind, 'unavailable', 'whoever holds it may have been forgotten');
    await one.claims.settled();
    for (const index of [0, 1, 2]) assert.equal(await lock(index, next), null);
    assert.equal(await kind(key), 'done', 'what they remember counts');
  });

  rule('a quorum is won again only with oks of after a loss of memory', async (key) => {
    const slow = gate('claim');
    links[1].before = slow.hook;
    links[2].before = failing('claim');
    const claim = one.claims.claim(key, retentionMs);
    await slow.reached;
    await until(clock, 'the first grant', async () => (await lock(0, key)) ?? undefined);
    await redis[0].flushall();
    await one.voters[0]!.ask({ op: 'claim', id: freshKey().id, token: 'A', lockMs: 1_000, recordMs: 1_000 });
    slow.open();
    const result = await claim;
    assert.equal(result.kind, 'unavailable', 'two oks came, of which one no longer counts');
  });

  rule('keys of another hand on one voter are its error alone', async (key) => {
    await redis[0].lpush(keys.record('ho', key.id), 'a list');
    const lease = await won(key);
    await one.claims.complete(lease, ok);
    assert.equal(await kind(key), 'done');
    await one.events.until(() => one.events.of('voterError').some(([, why]) => why === 'format') || undefined);
  });
});
