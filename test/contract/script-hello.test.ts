/** How a voter finds out that it may have forgotten something, and for how long it then does not count. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, suite, test } from 'node:test';
import { RedisLink } from '../../src/redis/redis-link.ts';
import { lockHoldMs, type Item } from '../../src/redis/items.ts';
import { keys } from '../../src/redis/codec.ts';
import { writtenToFile } from '../support/keys.ts';
import { hold, linkUp, marker, prefix, rawVoter, say, type RawVoter } from '../support/raw-voter.ts';

const lifeMs = 20_000;
const id = 'Bgahb4vZQ1mYl2mVtT3sHw';
const claim: Item = { op: 'claim', id, token: 'A', lockMs: lifeMs, recordMs: 60_000 };

const hello = (nonce: string, life = lifeMs): Item => ({ op: 'hello', nonce, lifeMs: life, name: 'lock-0.redis:6379' });

async function runId(voter: RawVoter): Promise<string> {
  return /run_id:(\w+)/.exec(await voter.redis.info('server'))![1]!;
}

async function holdLeft(voter: RawVoter): Promise<number> {
  return await voter.redis.pttl(hold);
}

/** Within a second below: the time that a test takes between writing and reading it. */
function assertAbout(actualMs: number, expectedMs: number): void {
  assert.ok(actualMs <= expectedMs && actualMs > expectedMs - 1000, `${actualMs} ms should be about ${expectedMs} ms`);
}

/** As if the process had been another one: what a restart leaves of the marker. */
async function otherProcess(voter: RawVoter): Promise<void> {
  const before = (await voter.redis.get(marker))!;
  await voter.redis.set(marker, before.replace(await runId(voter), '0'.repeat(40)));
}

suite('a voter without an append-only file', () => {
  let voter: RawVoter;
  before(async () => void (voter = await rawVoter()));
  after(async () => await voter[Symbol.asyncDispose]());
  beforeEach(async () => await voter.redis.flushall());

  test('an empty one is greeted: marker without end, on hold without end', async () => {
    const { boot, held, answers } = await voter.run(hello('n1'));
    assert.deepEqual([boot, held, answers.map(say)], ['n1', true, ['hello empty']]);
    assert.equal(await voter.redis.get(marker), `1 n1 ${await runId(voter)} ${lifeMs} 0 e lock-0.redis:6379`);
    assert.deepEqual([await voter.redis.pttl(marker), await holdLeft(voter)], [-1, -1]);
    assert.deepEqual(answers, [{ status: 'hello', hold: 'empty', leftMs: -1, lostWallMs: 0 }]);
  });

  test('greeting it again changes nothing', async () => {
    await voter.run(hello('n1'));
    const { boot, answers } = await voter.run(hello('n2'));
    assert.deepEqual([boot, answers.map(say)], ['n1', ['hello empty']]);
    assert.equal(await holdLeft(voter), -1);
    await voter.redis.del(hold);
    assert.equal(say(await voter.ask(hello('n3'))), 'hello');
  });

  test('two gateways that greet it in one batch see the same', async () => {
    const { boot, answers } = await voter.run(hello('n1'), hello('n2'), claim);
    assert.deepEqual(answers.map(say), ['hello empty', 'hello empty', 'ok uncounted 1,0']);
    assert.equal(boot, 'n1');
  });

  test('one that has keys but no marker may have lost records', async () => {
    await voter.redis.set('somebody-elses', '1');
    assert.equal(say(await voter.ask(hello('n1'))), 'hello records');
  });

  test('trust lifts the hold of an empty one, for the boot that it was told', async () => {
    await voter.run(hello('n1'));
    assert.equal(say(await voter.ask({ op: 'trust', boot: 'n0' })), 'lost floor 0');
    const { held, answers } = await voter.run({ op: 'trust', boot: 'n1' }, claim);
    assert.deepEqual([held, answers.map(say)], [false, ['hello', 'ok 1,0']]);
    assert.equal(say(await voter.ask({ op: 'trust', boot: 'n1' })), 'lost floor 0');
  });

  for (const why of ['locks', 'records']) {
    test(`trust does not lift hold=${why}`, async () => {
      await voter.run(hello('n1'));
      await voter.redis.set(hold, why, 'PX', 10_000);
      assert.equal(say(await voter.ask({ op: 'trust', boot: 'n1' })), 'lost floor 0');
      assert.equal(await voter.redis.get(hold), why);
    });
  }

  for (const why of ['empty', 'records']) {
    test(`admit lifts hold=${why}, for the boot that it was told; a loss of memory is remembered`, async () => {
      await voter.run(hello('n1'));
      await voter.redis.set(hold, why);
      assert.equal(say(await voter.ask({ op: 'admit', boot: 'n0', lostWallMs: 0 })), 'lost floor 0');
      const { held, answers } = await voter.run({ op: 'admit', boot: 'n1', lostWallMs: 1_700_000_000_000 }, claim);
      assert.deepEqual([held, answers.map(say)], [false, ['hello', 'ok 1,0']]);
      const told = { status: 'hello', hold: '', leftMs: 0, lostWallMs: 1_700_000_000_000 } as const;
      assert.deepEqual(await voter.ask(hello('n2')), told);
      assert.equal(say(await voter.ask({ op: 'admit', boot: 'n1', lostWallMs: 0 })), 'lost floor 0');
    });
  }

  test('admit without a loss of memory leaves the one of before', async () => {
    await voter.run(hello('n1'), { op: 'admit', boot: 'n1', lostWallMs: 5 });
    await voter.redis.set(hold, 'records');
    await voter.run({ op: 'admit', boot: 'n1', lostWallMs: 0 });
    assert.deepEqual(await voter.ask(hello('n2')), { status: 'hello', hold: '', leftMs: 0, lostWallMs: 5 });
  });

  test('admit does not lift hold=locks', async () => {
    await voter.run(hello('n1'));
    await voter.redis.set(hold, 'locks', 'PX', 10_000);
    assert.equal(say(await voter.ask({ op: 'admit', boot: 'n1', lostWallMs: 0 })), 'lost floor 0');
    assert.equal(await voter.redis.get(hold), 'locks');
  });

  test('the right to copy belongs to one gateway at a time, until it runs out', async () => {
    const right = (token: string): Item => ({ op: 'sync', token, lockMs: 10_000 });
    assert.equal(say(await voter.ask(right('A'))), 'no-marker');
    await voter.run(hello('n1'));
    assert.deepEqual((await voter.run(right('A'), right('B'), right('A'))).answers.map(say), [
      'ok uncounted 0,0',
      'held A floor 0',
      'ok uncounted 0,0',
    ]);
    assertAbout(await voter.redis.pttl(keys.sync(prefix, '0')), 10_000);
    await voter.redis.del(keys.sync(prefix, '0'));
    assert.equal(say(await voter.ask(right('B'))), 'ok uncounted 0,0');
  });

  test('another process with the marker there, and no append-only file: records may be gone', async () => {
    await voter.run(hello('n1'), { op: 'trust', boot: 'n1' });
    await otherProcess(voter);
    const { boot, answers } = await voter.run(hello('n2'));
    assert.deepEqual([boot, answers.map(say)], ['n2', ['hello records']]);
  });

  test('FLUSHALL: the next claim finds no marker and is granted nothing, the next greeting starts anew', async () => {
    await voter.run(hello('n1'), { op: 'trust', boot: 'n1' }, claim);
    await voter.redis.flushall();
    const { boot, answers } = await voter.run(claim);
    assert.deepEqual([boot, answers.map(say)], ['', ['no-marker']]);
    assert.deepEqual(await voter.redis.keys('*'), []);
    assert.equal((await voter.run(hello('n2'))).boot, 'n2');
  });

  test('where INFO is forbidden the marker alone decides; allowed later, restarts are seen again', async () => {
    await voter.redis.acl('SETUSER', 'limited', 'on', '>a-test-password', '~*', '&*', '+@all', '-info', '-dbsize');
    const link = new RedisLink({
      ...{
        host: '127.0.0.1',
        port: voter.server.port,
        username: 'limited',
        password: 'a-test-password',
        tls: undefined,
      },
      ...{ prefix, timeoutMs: 5_000 },
    });
    try {
      await linkUp(link);
      const { boot, answers } = await link.run([hello('n1')], '0');
      assert.deepEqual(
        [boot, answers.map(say)],
        ['n1', ['hello records']],
        'whether it is empty cannot be seen either',
      );
      assert.deepEqual((await link.run([hello('n2')], '0')).boot, 'n1');
    } finally {
      await link.close();
    }
    assert.equal((await voter.run(hello('n3'))).boot, 'n1');
    await otherProcess(voter);
    assert.equal((await voter.run(hello('n4'))).boot, 'n4');
  });
});

suite('a voter with an append-only file', () => {
  let voter: RawVoter;
  before(async () => void (voter = await rawVoter({ appendonly: 'everysec' })));
  after(async () => await voter[Symbol.asyncDispose]());
  beforeEach(async () => await voter.fresh());

  async function restart(): Promise<void> {
    await writtenToFile(voter.server);
    await voter.server.kill();
    await voter.server.start();
    await linkUp(voter.link);
  }

  test('killed and started again, it keeps locks and records and is held for the longest lock', async () => {
    await voter.run(hello('n1'), claim);
    const old = await runId(voter);
    await restart();
    const { boot, held, answers } = await voter.run(hello('n2'), { ...claim, token: 'B' });
    assert.deepEqual([boot, held, answers.map(say)], ['n2', true, ['hello locks', 'held A floor 0']]);
    assert.notEqual(await runId(voter), old);
    assertAbout(await holdLeft(voter), lockHoldMs(lifeMs));
    assert.equal(say(await voter.ask({ op: 'trust', boot: 'n2' })), 'lost floor 0');
  });

  for (const why of ['empty', 'records']) {
    test(`restarted with hold=${why}, it goes on learning, without end`, async () => {
      await voter.redis.set(hold, why);
      await restart();
      const { boot, answers } = await voter.run(hello('n2', 1_000));
      assert.deepEqual([boot, answers.map(say)], ['n2', [`hello ${why}`]]);
      assert.equal(await holdLeft(voter), -1);
    });
  }

  test('a server that says nothing before it is on disk loses no lock: restarted, it counts at once', async () => {
    const always = (nonce: string): Item => ({ ...hello(nonce), op: 'hello', appendfsync: 'always' }) as Item;
    await voter.run(always('n1'), claim);
    await restart();
    const { boot, held, answers } = await voter.run(hello('n2'), { ...claim, token: 'B' });
    assert.deepEqual([boot, held, answers.map(say)], ['n2', false, ['hello', 'held A floor 0']]);
    // What it did before decides, not what it does now.
    await restart();
    assert.equal(say(await voter.ask(always('n3'))), 'hello locks');
  });

  test('restarted while it learns, it goes on learning, whatever it syncs', async () => {
    await voter.run({ ...hello('n1'), op: 'hello', appendfsync: 'always' } as Item);
    await voter.redis.set(hold, 'records');
    await restart();
    assert.equal(say(await voter.ask(hello('n2'))), 'hello records');
  });

  test('its clock stepped: another boot, and on hold for the longest lock; once for each boot', async () => {
    await voter.run(hello('n1'), claim);
    const stepped: Item = { op: 'stepped', boot: 'boot-1', nonce: 'n2' };
    const { boot, held, answers } = await voter.run(stepped, { ...stepped, nonce: 'n3' });
    assert.deepEqual([boot, held, answers.map(say)], ['n2', true, ['hello locks', 'lost floor 0']]);
    assertAbout(await holdLeft(voter), lockHoldMs(lifeMs));
    assert.equal(say(await voter.ask(hello('n4'))), 'hello locks');
    await voter.redis.set(hold, 'records');
    assert.equal(say(await voter.ask({ op: 'stepped', boot: 'n2', nonce: 'n5' })), 'hello records');
    assert.equal(await holdLeft(voter), -1);
  });

  test('a loss of memory is remembered over a restart', async () => {
    await voter.redis.set(hold, 'records');
    await voter.run({ op: 'admit', boot: 'boot-1', lostWallMs: 1_700_000_000_000 });
    await restart();
    const [answer] = (await voter.run(hello('n2'))).answers;
    assert.ok(answer?.status === 'hello');
    assert.deepEqual([answer.hold, answer.lostWallMs], ['locks', 1_700_000_000_000]);
  });

  test('the longest lock life that any gateway named is remembered, and decides the hold', async () => {
    await voter.run(hello('n1', 5_000));
    await voter.run(hello('n2', 30_000));
    await voter.run(hello('n3', 1_000));
    assert.match((await voter.redis.get(marker))!, / 30000 /);
    await otherProcess(voter);
    await voter.run(hello('n4', 1_000));
    assertAbout(await holdLeft(voter), lockHoldMs(30_000));
  });

  test('restarted twice, it is held anew', async () => {
    await restart();
    await voter.run(hello('n2', 1_000));
    await voter.redis.pexpire(hold, 500);
    await restart();
    assert.equal(say(await voter.ask(hello('n3', 1_000))), 'hello locks');
    assertAbout(await holdLeft(voter), lockHoldMs(1_000));
  });
});
