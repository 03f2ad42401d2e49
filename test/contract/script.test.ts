/**
 * What the script answers and leaves behind, operation by operation and state by state, on a real
 * redis-server. The states are written by hand in the format that `script.ts` documents.
 */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Item } from '../../src/redis/items.ts';
import { keys } from '../../src/redis/codec.ts';
import { hold, prefix, rawVoter, say, type RawVoter } from '../support/raw-voter.ts';

const id = 'Bgahb4vZQ1mYl2mVtT3sHw';
const lockKey = keys.lock(prefix, id);
const recordKey = keys.record(prefix, id);
const lockMs = 40_000;
const recordMs = 900_000;

let voter: RawVoter;
before(async () => void (voter = await rawVoter()));
after(async () => await voter[Symbol.asyncDispose]());
beforeEach(async () => await voter.fresh());

/** The operations as token A issues them, with attempt 3 where one is given. */
const ops = {
  claim: { op: 'claim', id, token: 'A', lockMs, recordMs },
  confirm: { op: 'confirm', id, token: 'A', attempt: 3, recordMs },
  extend: { op: 'extend', id, token: 'A', lockMs, unknown: false },
  'extend unknown': { op: 'extend', id, token: 'A', lockMs, unknown: true },
  heal: { op: 'heal', id, token: 'A', lockMs, attempt: 3, recordMs },
  complete: { op: 'complete', id, token: 'A', attempt: 3, content: '201,9', recordMs },
  repair: { op: 'repair', id, token: 'A', attempt: 3, content: '201,9', recordMs },
  'release sent': { op: 'release', id, token: 'A', takeBack: false },
  'release unsent': { op: 'release', id, token: 'A', takeBack: true },
  peek: { op: 'peek', id },
  read: { op: 'read', id },
  look: { op: 'look', id },
  'learn open': { op: 'learn', id, done: false, attempt: 3, floor: 0, content: '', recordMs },
  'learn floor': { op: 'learn', id, done: false, attempt: 3, floor: 3, content: '', recordMs },
  'learn done': { op: 'learn', id, done: true, attempt: 3, floor: 1, content: '201,9', recordMs },
} as const satisfies Record<string, Item>;

type Row = readonly [
  op: keyof typeof ops,
  lock: string,
  record: string,
  answer: string,
  lockAfter: string,
  recordAfter: string,
];

/** `-`: no such key; `=`: as it was. Locks: token, attempt, counted or not, known or unknown. */
const table: readonly Row[] = [
  ['claim', '-', '-', 'ok 1,0', '1 A 1 ck', 'o1,0'],
  ['claim', '-', 'o4,0', 'ok 5,0', '1 A 5 ck', 'o5,0'],
  ['claim', '-', 'o4,4', 'ok 5,4', '1 A 5 ck', 'o5,4'],
  ['claim', '-', 'd2,1,200,7', 'done 2,1 200,7', '=', '='],
  ['claim', '1 B 1 ck', 'o1,0', 'held B floor 0', '=', '='],
  ['claim', '1 B 1 cu', 'o5,4', 'held B unknown floor 4', '=', '='],
  ['claim', '1 B 1 ck', 'd1,0,200,7', 'done 1,0 200,7', '=', '='],
  ['claim', '1 A 1 ck', 'd1,0,200,7', 'done 1,0 200,7', '=', '='],
  ['claim', '1 A 2 ck', 'o2,0', 'ok 2,0', '=', '='],
  ['claim', '1 A 2 nk', 'o2,0', 'ok uncounted 2,0', '=', '='],
  ['claim', '1 A 0 nk', '-', 'ok uncounted 0,0', '=', '='],

  ['confirm', '1 A 2 ck', 'o2,0', 'ok 3,0', '=', 'o3,0'],
  ['confirm', '1 A 4 ck', 'o4,1', 'ok 4,1', '=', 'o4,1'],
  ['confirm', '1 A 2 nk', 'o2,0', 'ok uncounted 3,0', '=', 'o3,0'],
  ['confirm', '1 A 2 ck', '-', 'ok 3,0', '=', 'o3,0'],
  ['confirm', '1 A 2 ck', 'd2,0,200,7', 'done 2,0 200,7', '=', '='],
  ['confirm', '1 B 2 ck', 'd2,0,200,7', 'done 2,0 200,7', '=', '='],
  ['confirm', '1 B 2 ck', 'o2,0', 'lost floor 0', '=', '='],
  ['confirm', '-', 'o2,1', 'lost floor 1', '=', '='],
  ['confirm', '-', '-', 'lost floor 0', '=', '='],

  ['extend', '1 A 2 ck', 'o2,1', 'ok 2,1', '=', '='],
  ['extend', '1 A 2 nu', 'o2,0', 'ok uncounted 2,0', '=', '='],
  ['extend', '1 A 2 ck', 'd2,0,200,7', 'ok 2,0', '=', '='],
  ['extend', '1 B 2 ck', 'o2,0', 'lost floor 0', '=', '='],
  ['extend', '-', 'o2,1', 'lost floor 1', '=', '='],
  ['extend unknown', '1 A 2 ck', 'o2,0', 'ok 2,0', '1 A 2 cu', '='],
  ['extend unknown', '1 B 2 ck', 'o2,0', 'lost floor 0', '=', '='],

  ['heal', '-', '-', 'ok uncounted 3,0', '1 A 0 nk', 'o3,0'],
  ['heal', '-', 'o1,1', 'ok uncounted 3,1', '1 A 0 nk', 'o3,1'],
  ['heal', '-', 'o5,0', 'ok uncounted 5,0', '1 A 0 nk', 'o5,0'],
  ['heal', '-', 'd1,0,200,7', 'done 1,0 200,7', '=', '='],
  ['heal', '1 B 4 ck', 'o4,0', 'held B floor 0', '=', '='],
  ['heal', '1 A 3 ck', 'o3,0', 'ok 3,0', '=', '='],
  ['heal', '1 A 3 nk', 'o3,0', 'ok uncounted 3,0', '=', '='],

  ...(['complete', 'repair'] as const).flatMap((op): Row[] => [
    [op, '1 A 3 ck', 'o3,0', 'ok 3,0', '-', 'd3,0,201,9'],
    [op, '1 A 3 ck', 'o4,1', 'ok 4,1', '-', 'd4,1,201,9'],
    [op, '1 B 4 ck', 'o4,0', 'ok 4,0', '=', 'd4,0,201,9'],
    [op, '-', '-', 'ok 3,0', '-', 'd3,0,201,9'],
    [op, '-', 'o1,0', 'ok 3,0', '-', 'd3,0,201,9'],
    // The first writer's content stays, the attempt becomes the larger of both.
    [op, '1 A 3 ck', 'd2,0,200,7', 'ok 3,0', '-', 'd3,0,200,7'],
    [op, '1 B 3 ck', 'd5,1,200,7', 'ok 5,1', '=', '='],
    [op, '1 A 3 ck', 'o3,3', 'forgotten floor 3', '-', '='],
    [op, '1 B 5 ck', 'o5,4', 'forgotten floor 4', '=', '='],
    [op, '-', 'd5,4,200,7', 'forgotten floor 4', '-', '='],
  ]),

  ['release sent', '1 A 1 ck', 'o1,0', 'ok 1,0', '-', '='],
  ['release sent', '1 A 1 ck', 'd1,0,200,7', 'ok 1,0', '-', '='],
  ['release sent', '1 B 1 ck', 'o1,0', 'lost floor 0', '=', '='],
  ['release sent', '-', 'o1,1', 'lost floor 1', '-', '='],
  ['release unsent', '1 A 1 ck', 'o1,0', 'ok 0,0', '-', '-'],
  ['release unsent', '1 A 2 ck', 'o2,0', 'ok 1,0', '-', 'o1,0'],
  ['release unsent', '1 A 5 ck', 'o5,4', 'ok 4,4', '-', 'o4,4'],
  ['release unsent', '1 A 2 cu', 'o2,0', 'ok 1,0', '-', 'o1,0'],
  // Taken back only where the record still has exactly the number that this claim wrote, where the voter counted it…
  ['release unsent', '1 A 2 ck', 'o3,0', 'ok 3,0', '-', '='],
  ['release unsent', '1 A 2 ck', 'o1,0', 'ok 1,0', '-', '='],
  ['release unsent', '1 A 2 nk', 'o2,0', 'ok uncounted 2,0', '-', '='],
  // …never from a lock that was healed, never from a done record, and never from another's.
  ['release unsent', '1 A 0 nk', 'o2,0', 'ok uncounted 2,0', '-', '='],
  ['release unsent', '1 A 0 ck', '-', 'ok 0,0', '-', '-'],
  ['release unsent', '1 A 2 ck', 'd2,0,200,7', 'ok 2,0', '-', '='],
  ['release unsent', '1 B 2 ck', 'o2,0', 'lost floor 0', '=', '='],
  ['release unsent', '-', 'o2,0', 'lost floor 0', '-', '='],

  ['peek', '-', '-', 'free 0,0', '-', '-'],
  ['peek', '-', 'o2,1', 'free 2,1', '-', '='],
  ['peek', '1 B 2 cu', 'o2,0', 'held B unknown floor 0', '=', '='],
  ['peek', '1 B 2 ck', 'd2,0,200,7', 'done 2,0 200,7', '=', '='],

  ['read', '1 B 2 ck', '-', 'record open 0,0', '=', '-'],
  ['read', '-', 'o2,1', 'record open 2,1', '-', '='],
  ['read', '1 B 2 ck', 'd2,1,200,7', 'record done 2,1 200,7', '=', '='],

  ['look', '-', 'o2,1', 'lock', '-', '='],
  ['look', '1 B 2 ck', 'o2,0', 'lock B', '=', '='],
  // Whatever the record says: an attempt may still run after another completed the event.
  ['look', '1 B 2 cu', 'd1,0,200,7', 'lock B unknown', '=', '='],

  ['learn open', '-', '-', 'ok 3,0', '-', 'o3,0'],
  ['learn open', '1 B 4 ck', 'o4,1', 'ok 4,1', '=', '='],
  ['learn open', '-', 'o2,2', 'ok 3,2', '-', 'o3,2'],
  // Done wins, whatever its attempt, and keeps its content.
  ['learn open', '-', 'd2,0,200,7', 'ok 3,0', '-', 'd3,0,200,7'],
  ['learn done', '-', 'd2,0,200,7', 'ok 3,1', '-', 'd3,1,200,7'],
  ['learn done', '-', 'd5,0,200,7', 'ok 5,1', '-', 'd5,1,200,7'],
  ['learn done', '-', '-', 'ok 3,1', '-', 'd3,1,201,9'],
  ['learn done', '1 B 5 ck', 'o5,0', 'ok 5,1', '=', 'd5,1,201,9'],
  // …unless it was forgotten: what is at or below a floor, here or there, is void.
  ['learn done', '-', 'o3,3', 'ok 3,3', '-', '='],
  ['learn done', '-', 'o5,4', 'ok 5,4', '-', '='],
  ['learn done', '-', 'd1,0,200,7', 'ok 3,1', '-', 'd3,1,201,9'],
  // A forget: attempts up to 3 are void, the record is created where there is none, the lock is left to its owner.
  ['learn floor', '-', '-', 'ok 3,3', '-', 'o3,3'],
  ['learn floor', '1 B 3 ck', 'o3,0', 'ok 3,3', '=', 'o3,3'],
  ['learn floor', '-', 'd3,0,200,7', 'ok 3,3', '-', 'o3,3'],
  ['learn floor', '-', 'd4,0,200,7', 'ok 4,3', '-', 'd4,3,200,7'],
];

async function written(key: string): Promise<string> {
  return (await voter.redis.get(key)) ?? '-';
}

for (const [op, lock, record, answer, lockAfter, recordAfter] of table) {
  test(`${op} where the lock is ${lock} and the record ${record}: ${answer}`, async () => {
    if (lock !== '-') await voter.redis.set(lockKey, lock, 'PX', 10_000);
    if (record !== '-') await voter.redis.set(recordKey, record, 'PX', 60_000);
    assert.equal(say(await voter.ask(ops[op])), answer);
    assert.equal(await written(lockKey), lockAfter === '=' ? lock : lockAfter);
    assert.equal(await written(recordKey), recordAfter === '=' ? record : recordAfter);
  });
}

test('a voter on hold does everything, and counts nothing', async () => {
  await voter.redis.set(hold, 'locks', 'PX', 60_000);
  assert.equal(say(await voter.ask(ops.claim)), 'ok uncounted 1,0');
  assert.equal(await written(lockKey), '1 A 1 nk');
  assert.equal(say(await voter.ask(ops.confirm)), 'ok uncounted 3,0');
  assert.equal(say(await voter.ask(ops.complete)), 'ok uncounted 3,0');
  assert.equal(say(await voter.ask({ ...ops.claim, token: 'B' })), 'done 3,0 201,9');
  assert.equal(say(await voter.ask({ ...ops.peek, id: 'elsewhere-0000000000000' })), 'free uncounted 0,0');
});

test('what is learnt lives as long as it had left elsewhere, and no known record ends sooner for it', async () => {
  const near = (actual: number, expected: number): void => assert.ok(Math.abs(actual - expected) < 1_000, `${actual}`);
  await voter.ask({ ...ops['learn done'], recordMs: 30_000 });
  near(await voter.redis.pttl(recordKey), 30_000);
  await voter.ask({ ...ops['learn open'], recordMs: 90_000 });
  near(await voter.redis.pttl(recordKey), 30_000);
  await voter.redis.set(recordKey, 'o1,0', 'PX', 60_000);
  await voter.ask({ ...ops['learn open'], recordMs: 10_000 });
  near(await voter.redis.pttl(recordKey), 60_000);
});

test('a lock granted on hold stays uncounted when the hold is over', async () => {
  await voter.redis.set(hold, 'locks', 'PX', 60_000);
  await voter.ask(ops.claim);
  await voter.redis.del(hold);
  assert.equal(say(await voter.ask(ops.claim)), 'ok uncounted 1,0');
  assert.equal(say(await voter.ask(ops.extend)), 'ok uncounted 1,0');
  assert.equal(say(await voter.ask(ops['release unsent'])), 'ok uncounted 1,0', 'and its attempt is not taken back');
});

test('a lock granted before a hold does not count during it', async () => {
  await voter.ask(ops.claim);
  await voter.redis.set(hold, 'locks', 'PX', 60_000);
  assert.equal(say(await voter.ask(ops.claim)), 'ok uncounted 1,0');
  assert.equal(say(await voter.ask(ops.extend)), 'ok uncounted 1,0');
});

test('items of a batch run in their order, each seeing what the one before did', async () => {
  const other = { ...ops.claim, token: 'B' };
  const { answers, boot, held } = await voter.run(ops.claim, other, ops['release unsent'], other, ops.claim, ops.peek);
  assert.deepEqual(answers.map(say), [
    'ok 1,0',
    'held A floor 0',
    'ok 0,0',
    'ok 1,0',
    'held B floor 0',
    'held B floor 0',
  ]);
  assert.deepEqual([boot, held], ['boot-1', false]);
});

test('every operation of the same token can be repeated without more effect', async () => {
  for (const op of ['claim', 'confirm', 'extend', 'heal', 'complete'] as const) {
    await voter.ask(ops[op]);
    const first = [await written(lockKey), await written(recordKey)];
    await voter.ask(ops[op]);
    assert.deepEqual([await written(lockKey), await written(recordKey)], first, op);
  }
});
