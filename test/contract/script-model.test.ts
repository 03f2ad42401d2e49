/**
 * The model (`model.ts`: the embedded voter, the voters of the simulation) held against the real script:
 * the same random batches on both give the same answers and leave the same state behind.
 *
 * Time passes on the model's clock, and on Redis by taking the same amount off the life of every key. Lives and
 * steps are chosen so that no key ever ends within half a second of a step: the test's own duration decides nothing.
 */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Answer, BatchAnswer, Item } from '../../src/redis/items.ts';
import { VoterModel } from '../../src/redis/model.ts';
import { keys, recordId } from '../../src/redis/codec.ts';
import { marker, prefix, rawVoter, type RawVoter } from '../support/raw-voter.ts';

const ids = ['Bgahb4vZQ1mYl2mVtT3sHw', 'x-second-event-in-test', 'Zthird-event-in-a-test'] as const;
/** A resource: its record is of another kind than that of an event. */
const resource = 'V-versions-of-resource';
const version = fc.constantFrom('', '105', '106', '1110');
const broken = 'Afourth-event-for-both';
/** Odd multiples of 2.5 s end between two steps, which are multiples of 5 s; a hold of theirs does too (1 % and 1002 ms more). */
const lives = [2_500, 7_500, 12_500, 997_500] as const;
const toleranceMs = 1_000;

const id = fc.constantFrom(...ids);
const token = fc.constantFrom('A', 'B', 'C');
const attempt = fc.integer({ min: 1, max: 4 });
const lockMs = fc.constantFrom(...lives);
const recordMs = fc.constantFrom(7_500, 997_500);
const content = fc.constantFrom('200,1', '201,2');
const flag = fc.boolean();
const exact = { noNullPrototype: true };

const item: fc.Arbitrary<Item> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ op: fc.constant('claim'), id, token, lockMs, recordMs }, exact) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('confirm'), id, token, attempt, recordMs }, exact) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('extend'), id, token, lockMs, unknown: flag }, exact) },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('heal'), id, token, lockMs, attempt, recordMs }, exact) },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constantFrom('complete', 'repair'), id, token, attempt, content, recordMs }, exact),
  },
  { weight: 4, arbitrary: fc.record({ op: fc.constant('release'), id, token, takeBack: flag }, exact) },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('peek'), id }, exact) },
  {
    weight: 1,
    arbitrary: fc.record(
      {
        op: fc.constant('hello'),
        nonce: fc.constantFrom('n1', 'n2', 'n3'),
        lifeMs: fc.constantFrom(2_500, 7_500),
        name: fc.constant('v'),
        appendfsync: fc.constantFrom(undefined, 'always', 'other'),
      },
      exact,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constant('trust'), boot: fc.constantFrom('n0', 'n1', 'n2', 'n3') }, exact),
  },
  {
    weight: 1,
    arbitrary: fc.record(
      { op: fc.constant('admit'), boot: fc.constantFrom('n0', 'n1', 'n2', 'n3'), lostWallMs: fc.constantFrom(0, 7, 9) },
      exact,
    ),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constantFrom('read', 'look'), id }, exact) },
  {
    weight: 3,
    arbitrary: fc.record(
      {
        ...{ op: fc.constant('order'), id: fc.constant(resource), recordMs },
        ...{ applied: version, pending: version, instead: version },
      },
      exact,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record(
      {
        ...{
          op: fc.constant('present'),
          service: fc.constantFrom('s', 't'),
          own: fc.constantFrom('', 'list', 'other'),
        },
        ms: fc.constantFrom(2_500, 7_500),
      },
      exact,
    ),
  },
  {
    weight: 1,
    arbitrary: fc.record(
      { op: fc.constant('relearn'), boot: fc.constantFrom('n0', 'n1', 'n2'), nonce: fc.constantFrom('n3', 'n4') },
      exact,
    ),
  },
  {
    weight: 3,
    arbitrary: fc.record(
      { op: fc.constant('learn'), id, done: flag, attempt, floor: fc.integer({ min: 0, max: 3 }), content, recordMs },
      exact,
    ),
  },
  { weight: 1, arbitrary: fc.record({ op: fc.constant('sync'), token, lockMs }, exact) },
  {
    weight: 1,
    arbitrary: fc.record(
      { op: fc.constant('stepped'), boot: fc.constantFrom('n0', 'n1', 'n2'), nonce: fc.constantFrom('n3', 'n4') },
      exact,
    ),
  },
);

type Step =
  | { readonly kind: 'batch'; readonly items: readonly Item[] }
  | { readonly kind: 'time'; readonly ms: number }
  | { readonly kind: 'restart' | 'flush' }
  /** What a forget leaves: an open record with a floor. */
  | { readonly kind: 'floor'; readonly id: string; readonly floor: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constant('batch'), items: fc.array(item, { minLength: 1, maxLength: 6 }) }, exact),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('time'), ms: fc.constantFrom(5_000, 10_000) }, exact) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('floor'), id, floor: attempt }, exact) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('restart', 'flush') }, exact) },
);

/** Both sides, driven alike. */
class Pair {
  readonly #voter: RawVoter;
  readonly #model: VoterModel;
  #now = 0;
  #processes = 0;

  constructor(voter: RawVoter, aof: boolean) {
    this.#voter = voter;
    this.#model = new VoterModel({ now: () => this.#now, aof });
  }

  async take(one: Step): Promise<void> {
    const { redis } = this.#voter;
    switch (one.kind) {
      case 'batch':
        return assertSame(await this.#onRedis(one.items), this.#model.run(one.items));
      case 'time':
        this.#now += one.ms;
        for (const key of await redis.keys('*')) {
          const left = await redis.pttl(key);
          if (left >= 0) await redis.pexpire(key, left - one.ms);
        }
        return undefined;
      case 'restart': {
        // What the script can see of a restart: the marker names another process than the one that runs.
        this.#processes += 1;
        this.#model.restart(`process-${this.#processes}`, true);
        const old = await redis.get(marker);
        if (old !== null) await redis.set(marker, old.replace(/^(1 \S+) \S+/, `$1 process${this.#processes}`));
        return undefined;
      }
      case 'flush':
        this.#model.flush();
        await redis.flushall();
        return undefined;
      case 'floor':
        this.#model.write(one.id, { attempt: one.floor, floor: one.floor, lifeMs: 997_500 });
        await redis.set(keys.record(prefix, one.id), `o${one.floor},${one.floor}`, 'PX', 997_500);
        return undefined;
    }
  }

  async compare(): Promise<void> {
    const looks = ids.flatMap((one): Item[] => [
      { op: 'peek', id: one },
      { op: 'read', id: one },
      { op: 'look', id: one },
    ]);
    looks.push({ op: 'read', id: resource });
    assertSame(await this.#voter.run(...looks), this.#model.run(looks));
    const known = (await this.#voter.redis.keys(`${prefix}:*:r`)).map((key) => recordId(prefix, key));
    assert.deepEqual(new Set(known), new Set(this.#model.ids()));
  }

  /** With an item between any two that fails on Redis: what stands beside it must not notice. */
  async #onRedis(items: readonly Item[]): Promise<BatchAnswer> {
    await this.#voter.redis.set(keys.lock(prefix, broken), 'foreign', 'PX', 997_500);
    const mixed = items.flatMap((one): Item[] => [
      one,
      { op: 'claim', id: broken, token: 'A', lockMs: 2_500, recordMs: 2_500 },
    ]);
    const hasHello = items.some((one) => one.op === 'hello');
    // The broken key would make an empty voter look used: it stays out where that matters.
    if (hasHello) await this.#voter.redis.del(keys.lock(prefix, broken));
    const answer = await this.#voter.run(...(hasHello ? items : mixed));
    await this.#voter.redis.del(keys.lock(prefix, broken));
    if (hasHello) return answer;
    assert.ok(
      answer.answers.every((one, index) => index % 2 === 0 || one.status === 'error' || one.status === 'no-marker'),
    );
    return { ...answer, answers: answer.answers.filter((_, index) => index % 2 === 0) };
  }
}

function assertSame(redis: BatchAnswer, model: BatchAnswer): void {
  assert.deepEqual(
    { ...redis, answers: redis.answers.map(timeless) },
    { ...model, answers: model.answers.map(timeless) },
  );
  redis.answers.forEach((answer, index) => {
    const other = model.answers[index]!;
    if (!('leftMs' in answer) || !('leftMs' in other)) return;
    const difference = Math.abs(answer.leftMs - other.leftMs);
    assert.ok(difference <= toleranceMs, `${answer.leftMs} ms left on Redis, ${other.leftMs} in the model`);
  });
}

function timeless(answer: Answer): object {
  return 'leftMs' in answer ? { ...answer, leftMs: 'some' } : answer;
}

for (const aof of [false, true]) {
  let voter: RawVoter;
  before(async () => void (voter = await rawVoter(aof ? { appendonly: 'everysec' } : {})));
  after(async () => await voter[Symbol.asyncDispose]());

  test(`random batches: the script and its model agree, ${aof ? 'with' : 'without'} an append-only file`, async () => {
    const runs = fc.asyncProperty(
      fc.boolean(),
      fc.array(step, { minLength: 1, maxLength: 25 }),
      async (greeted, steps) => {
        await voter.redis.flushall();
        const pair = new Pair(voter, aof);
        if (greeted) {
          const items: Item[] = [
            { op: 'hello', nonce: 'n0', lifeMs: 2_500, name: 'v' },
            { op: 'trust', boot: 'n0' },
          ];
          await pair.take({ kind: 'batch', items });
        }
        for (const one of steps) {
          await pair.take(one);
          await pair.compare();
        }
      },
    );
    await fc.assert(runs, { numRuns: 300 });
  });
}
