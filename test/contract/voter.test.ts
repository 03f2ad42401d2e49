/** One voter before one real redis-server: what goes over the wire, in which order, and what a changed server means for old answers. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, suite, test } from 'node:test';
import { Redis } from 'ioredis';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import type { Item } from '../../src/redis/items.ts';
import type { Voter } from '../../src/redis/voter.ts';
import { keys } from '../../src/redis/codec.ts';
import { countedVoters, freshKey, quorum, type Quorum } from '../support/quorum.ts';
import { say } from '../support/raw-voter.ts';

const lockMs = 20_000;
const recordMs = 60_000;

const claim = (id: string, token = 'A') => ({ op: 'claim', id, token, lockMs, recordMs }) as const satisfies Item;
const release = (id: string, token = 'A') => ({ op: 'release', id, token, takeBack: true }) as const satisfies Item;

suite('a voter', () => {
  let server: RedisServer;
  let redis: Redis;
  let one: Quorum;
  let voter: Voter;
  before(async () => {
    server = await startRedisServer();
    redis = new Redis(server.url);
    one = quorum([server.port], { claims: { lockTtlMs: lockMs } });
    voter = one.voters[0]!;
    await countedVoters(one, 1);
  });
  after(async () => {
    await one[Symbol.asyncDispose]();
    redis.disconnect();
    await server[Symbol.asyncDispose]();
  });
  beforeEach(async () => await redis.config('RESETSTAT'));

  /** How often the script was run since the test began; greetings come every two seconds and may add one. */
  async function runs(): Promise<number> {
    return Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
  }

  test('what is asked in one turn of the event loop goes as one batch', async () => {
    const asked = Array.from({ length: 60 }, () => voter.ask(claim(freshKey().id)));
    await Promise.resolve();
    asked.push(...Array.from({ length: 60 }, () => voter.ask({ op: 'peek', id: freshKey().id })));
    const answers = await Promise.all(asked);
    assert.ok(answers.slice(0, 60).every((answer) => say(answer) === 'ok 1,0'));
    assert.ok((await runs()) <= 2);
  });

  test('at most 200 items go together', async () => {
    await Promise.all(Array.from({ length: 450 }, () => voter.ask(claim(freshKey().id))));
    const count = await runs();
    assert.ok(count === 3 || count === 4, `${count} runs`);
  });

  test('at most 256 KiB go together, however large one item is', async () => {
    const content = 'x'.repeat(100 * 1024);
    const complete = (): Item & { op: 'complete' } => ({
      op: 'complete',
      id: freshKey().id,
      token: 'A',
      attempt: 1,
      content,
      recordMs,
    });
    await Promise.all(Array.from({ length: 5 }, () => voter.ask(complete())));
    const count = await runs();
    assert.ok(count === 3 || count === 4, `${count} runs`);
    const huge = await voter.ask({ ...complete(), content: 'x'.repeat(300 * 1024) });
    assert.equal(huge.status, 'ok');
  });

  test('order is kept: the release of a key comes before the next claim of it, in one batch and across batches', async () => {
    const { id } = freshKey();
    assert.equal(say(await voter.ask(claim(id, 'A'))), 'ok 1,0');
    const [, taken] = await Promise.all([voter.ask(release(id, 'A')), voter.ask(claim(id, 'B'))]);
    assert.equal(say(taken), 'ok 1,0');
    const filler = Array.from({ length: 199 }, () => voter.ask({ op: 'peek', id: freshKey().id }));
    const [, next] = await Promise.all([voter.ask(release(id, 'B')), voter.ask(claim(id, 'C')), ...filler]);
    assert.equal(say(next), 'ok 1,0');
  });

  test("a claim's whole round costs one run per voter, however many claims there are", async () => {
    const results = await Promise.all(
      Array.from({ length: 100 }, async () => await one.claims.claim(freshKey(), recordMs)),
    );
    assert.ok(results.every((result) => result.kind === 'won'));
    assert.ok((await runs()) <= 2);
  });

  test('B49: SCRIPT FLUSH: the script is loaded once, everything is answered, order is kept', async () => {
    const { id } = freshKey();
    await voter.ask(claim(id, 'A'));
    await redis.script('FLUSH');
    const told = one.events.of('voterError').length;
    const answers = await Promise.all([
      voter.ask({ op: 'extend', id, token: 'A', lockMs, unknown: false }),
      voter.ask(release(id, 'A')),
      voter.ask(claim(id, 'B')),
      voter.ask(claim(id, 'C')),
    ]);
    assert.deepEqual(answers.map(say), ['ok 1,0', 'ok 0,0', 'ok 1,0', 'held B floor 0']);
    assert.deepEqual(
      one.events
        .of('voterError')
        .slice(told)
        .map(([, why]) => why),
      ['noscript'],
    );
    assert.equal(say(await voter.ask(release(id, 'B'))), 'ok 0,0');
    assert.equal(await redis.exists(keys.lock('ho', id)), 0);
  });

  test('B49: SCRIPT FLUSH with several batches under way: none is lost, none overtakes another', async () => {
    await redis.script('FLUSH');
    const { id } = freshKey();
    const items = [
      claim(id, 'A'),
      { op: 'extend', id, token: 'A', lockMs, unknown: false },
      { op: 'confirm', id, token: 'A', attempt: 3, recordMs },
      { op: 'complete', id, token: 'A', attempt: 3, content: '200', recordMs },
      claim(id, 'B'),
    ] as const;
    const asked: ReturnType<Voter['ask']>[] = [];
    for (const item of items) {
      asked.push(voter.ask(item));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual((await Promise.all(asked)).map(say), ['ok 1,0', 'ok 1,0', 'ok 3,0', 'ok 3,0', 'done 3,0 200']);
  });

  test('B49: SCRIPT FLUSH: a claim that was given up is not sent again, and leaves no lock behind', async () => {
    await redis.script('FLUSH');
    const { id } = freshKey();
    const answers = await Promise.all([voter.ask(claim(id, 'A')), voter.ask(release(id, 'A'))]);
    assert.deepEqual(answers.map(say), ['error noscript', 'lost floor 0']);
    assert.equal(await redis.exists(keys.lock('ho', id)), 0);
  });

  test('an ok of before a loss of memory does not count after it', async () => {
    const { id } = freshKey();
    const reply = await voter.ask(claim(id));
    assert.ok(voter.counts(reply, id));
    await redis.flushall();
    const next = await voter.ask(claim(id));
    assert.equal(next.status, 'no-marker');
    assert.ok(!voter.counts(reply, id));
    // It is empty, but this is no first installation: nobody lifts its hold but the test.
    await one.events.until(() => (voter.hold === 'empty' ? true : undefined));
    await voter.trust();
    const fresh = await voter.ask(claim(id));
    assert.equal(say(fresh), 'ok 1,0');
    assert.ok(voter.counts(fresh, id) && !voter.counts(reply, id));
  });
});

test('with everything closed, no connection is left', async () => {
  await using server = await startRedisServer();
  const redis = new Redis(server.url);
  const all = await Promise.all([1, 2, 3].map(async () => quorum([server.port])));
  await countedVoters(all[0]!, 1);
  // In the middle of a claim, and before it was ever up.
  const claims = all.map(async (one) => await one.claims.claim(freshKey(), recordMs));
  await Promise.all(all.map(async (one) => await one[Symbol.asyncDispose]()));
  await Promise.all(claims);
  const closed = async (): Promise<boolean> =>
    String(await redis.client('LIST'))
      .trim()
      .split('\n').length === 1;
  while (!(await closed()));
  redis.disconnect();
});
