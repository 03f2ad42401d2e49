/** What the script makes of a server in trouble and of keys that are not its own; what its keys weigh and how long they live. */
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { errorClass } from '../../src/redis/errors.ts';
import type { Answer, Item } from '../../src/redis/items.ts';
import { LinkError } from '../../src/redis/link.ts';
import { keys } from '../../src/redis/codec.ts';
import { encodeDone } from '../../src/redis/done.ts';
import { hold, marker, prefix, rawVoter, say, type RawVoter } from '../support/raw-voter.ts';

const lockMs = 40_000;
const recordMs = 900_000;
const content = encodeDone({ status: 200, wallMs: 1_790_000_000_000, traceId: 'a'.repeat(32), reply: undefined });

let voter: RawVoter;
before(async () => void (voter = await rawVoter()));
after(async () => await voter[Symbol.asyncDispose]());
beforeEach(async () => await voter.fresh());
afterEach(async () => await voter.redis.config('SET', 'maxmemory', '0'));

/** An id of the length of real ones. */
const event = (n: number): string => `event-${n}`.padEnd(22, '_');
const id = event(0);
const lockKey = keys.lock(prefix, id);
const recordKey = keys.record(prefix, id);

const claim = (n: number, token = 'A'): Item => ({ op: 'claim', id: event(n), token, lockMs, recordMs });
const complete = (n: number): Item => ({ op: 'complete', id: event(n), token: 'A', attempt: 1, content, recordMs });

/** Every operation on event 0. */
const all: readonly Item[] = [
  claim(0),
  { op: 'confirm', id, token: 'A', attempt: 2, recordMs },
  { op: 'extend', id, token: 'A', lockMs, unknown: false },
  { op: 'heal', id, token: 'A', lockMs, attempt: 1, recordMs },
  complete(0),
  { op: 'repair', id, token: 'A', attempt: 1, content, recordMs },
  { op: 'release', id, token: 'A', takeBack: true },
  { op: 'peek', id },
];

function errorOf(answer: Answer): string {
  return answer.status === 'error' ? errorClass(answer.message) : `no error but ${say(answer)}`;
}

const foreign: readonly (readonly [what: string, lock: string, record: string])[] = [
  ['a lock of another format', '2 A 1 ck', 'o1,0'],
  ['a lock with a flag too many', '1 A 1 ckx', 'o1,0'],
  ['a lock that is empty', '', 'o1,0'],
  ['a record of another format', '1 A 1 ck', 'p1,0'],
  ['an open record with something behind it', '1 A 1 ck', 'o1,0,x'],
  ['a record without a floor', '1 A 1 ck', 'o1'],
  ['a record that is empty', '1 A 1 ck', ''],
];

for (const [what, lock, record] of foreign) {
  test(`${what} answers every operation with an error, and is left alone`, async () => {
    for (const item of all) {
      await voter.redis.mset(lockKey, lock, recordKey, record);
      const { answers } = await voter.run(claim(1), item, claim(2));
      assert.equal(errorOf(answers[1]!), 'format', item.op);
      assert.deepEqual(await voter.redis.mget(lockKey, recordKey), [lock, record], item.op);
      assert.deepEqual([say(answers[0]!), say(answers[2]!)], ['ok 1,0', 'ok 1,0']);
    }
  });
}

for (const which of [lockKey, recordKey]) {
  test(`WRONGTYPE at ${which} is this item's error alone`, async () => {
    for (const item of all) {
      await voter.fresh();
      await voter.redis.lpush(which, 'a list');
      const { answers } = await voter.run(claim(1), item, claim(2));
      assert.equal(errorOf(answers[1]!), 'format', item.op);
      assert.deepEqual([say(answers[0]!), say(answers[2]!)], ['ok 1,0', 'ok 1,0']);
      assert.deepEqual(await voter.redis.lrange(which, 0, -1), ['a list']);
    }
  });
}

test('out of memory: claims and completions fail one by one, releases and reads go on', async () => {
  await voter.run(claim(0), claim(1));
  await voter.redis.config('SET', 'maxmemory', '1');
  const { answers } = await voter.run(claim(5), complete(0), { op: 'peek', id: event(1) }, claim(2));
  assert.deepEqual([answers[0]!, answers[1]!, answers[3]!].map(errorOf), ['oom', 'oom', 'oom']);
  assert.equal(say(answers[2]!), 'held A floor 0');
  assert.equal(say(await voter.ask({ op: 'release', id: event(1), token: 'A', takeBack: false })), 'ok 1,0');
  assert.deepEqual(await voter.redis.keys('*:l'), [lockKey], 'nothing was granted, one was released');
  await voter.redis.config('SET', 'maxmemory', '0');
  assert.equal(say(await voter.ask(complete(0))), 'ok 1,0', 'the completion can be repeated');
});

test('out of memory: a claim whose record cannot be taken back keeps it, and its lock goes', async () => {
  await voter.run(claim(0));
  await voter.redis.config('SET', 'maxmemory', '1');
  assert.equal(say(await voter.ask({ op: 'release', id, token: 'A', takeBack: true })), 'ok 0,0');
  assert.deepEqual(await voter.redis.keys('*:?'), []);
});

test('a greeting of a voter that is known needs no memory', async () => {
  await voter.redis.config('SET', 'maxmemory', '1');
  assert.equal(say(await voter.ask({ op: 'hello', nonce: 'n2', lifeMs: 1000, name: 'x' })), 'hello');
});

test('SCRIPT FLUSH: the batch is refused as a whole, and runs once the script is loaded', async () => {
  await voter.redis.script('FLUSH');
  await assert.rejects(voter.run(claim(0)), (error) => error instanceof LinkError && error.errorClass === 'noscript');
  assert.deepEqual(await voter.redis.keys('*:?'), []);
  await voter.link.load();
  assert.equal(say(await voter.ask(claim(0))), 'ok 1,0');
});

test('every key but the marker has an end, whatever was done', async () => {
  await voter.redis.set(hold, 'locks', 'PX', 1);
  for (let first = 0; first < all.length; first += 1) {
    await voter.fresh();
    await voter.run(...all.slice(first), claim(1), complete(1), complete(1), claim(2), claim(2, 'B'));
    await voter.run({ op: 'release', id: event(2), token: 'A', takeBack: true }, claim(2, 'B'));
    for (const key of await voter.redis.keys('*')) {
      const left = await voter.redis.pttl(key);
      const most = key.endsWith(':l') ? lockMs : recordMs;
      if (key !== marker) assert.ok(left > 0 && left <= most, `${key} lives ${left} ms`);
    }
  }
});

test('an operation that keeps a record keeps its end', async () => {
  await voter.redis.set(recordKey, 'o3,0', 'PX', 50_000);
  await voter.redis.set(lockKey, '1 A 3 ck', 'PX', 50_000);
  await voter.ask({ op: 'release', id, token: 'A', takeBack: true });
  assert.ok((await voter.redis.pttl(recordKey)) <= 50_000, 'taken back');
  await voter.redis.set(recordKey, `d3,0,${content}`, 'PX', 50_000);
  await voter.ask({ op: 'complete', id, token: 'A', attempt: 5, content: 'other', recordMs });
  assert.match((await voter.redis.get(recordKey))!, /^d5,/);
  assert.ok((await voter.redis.pttl(recordKey)) <= 50_000, 'completed again');
});

test('claim and confirm refresh the life of an open record', async () => {
  await voter.redis.set(recordKey, 'o3,0', 'PX', 50_000);
  await voter.ask(claim(0));
  assert.ok((await voter.redis.pttl(recordKey)) > 800_000);
  await voter.redis.pexpire(recordKey, 50_000);
  await voter.ask({ op: 'confirm', id, token: 'A', attempt: 4, recordMs });
  assert.ok((await voter.redis.pttl(recordKey)) > 800_000);
});

test('a lock never outlives what was asked for, a heal or an extension included', async () => {
  await voter.run({ op: 'heal', id, token: 'A', lockMs: 7_000, attempt: 1, recordMs });
  assert.ok((await voter.redis.pttl(lockKey)) <= 7_000);
  await voter.run({ op: 'extend', id, token: 'A', lockMs: 3_000, unknown: true });
  assert.ok(
    (await voter.redis.pttl(lockKey)) <= 3_000,
    'an extension can also shorten: the life left behind when the outcome is unknown',
  );
});

test('an event that is done weighs at most 200 bytes on a voter', async () => {
  const usedBytes = async (): Promise<number> => Number(/used_memory:(\d+)/.exec(await voter.redis.info('memory'))![1]);
  // Away from the powers of two at which Redis holds two tables of keys for a moment.
  const events = 6_400;
  const before = await usedBytes();
  for (let n = 0; n < events; n += 128) {
    await voter.run(...Array.from({ length: 128 }, (_, i) => claim(n + i)));
    await voter.run(...Array.from({ length: 128 }, (_, i) => complete(n + i)));
  }
  const each = ((await usedBytes()) - before) / events;
  assert.equal(await voter.redis.dbsize(), events + 1);
  assert.ok(each <= 200, `${each} bytes per event`);
  const entry = Number(await voter.redis.call('MEMORY', 'USAGE', recordKey));
  assert.ok(entry <= 200, `${entry} bytes by MEMORY USAGE`);
});

test('keys are digests under a prefix, and both of an event share a hash tag', async () => {
  await voter.run(claim(0), claim(1), complete(1));
  assert.deepEqual(
    (await voter.redis.keys('*')).sort(),
    [marker, lockKey, recordKey, keys.record(prefix, event(1))].sort(),
  );
  assert.match(lockKey, /^ho:\{[0-9a-f]\}[\w-]{22}:l$/);
  assert.equal(lockKey.slice(0, -1), recordKey.slice(0, -1));
});
