/**
 * The known faults of redlock 5.0.0-beta.2, each shown on the package itself, and beside each what keeps it from
 * mattering here. When one of the former fails, the package has been mended and its guard may go.
 */
import assert from 'node:assert/strict';
import { mock, suite, test } from 'node:test';
import Redlock from 'redlock';
import { systemClock } from '../../src/clock.ts';
import type { Answer, Item } from '../../src/redis/items.ts';
import { LinkError } from '../../src/redis/link.ts';
import { failing, gate } from '../support/intercepted-link.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { countedVoters, freshKey, memoryLinks, patient, quorumOver, type Quorum } from '../support/quorum.ts';
import { isSettled, lockingClient, voteClient } from '../support/vote-clients.ts';
import { complaints, routes } from '../unit/config-source.ts';

const once = { retryCount: 0 };
const retentionMs = 60_000;

/** Claims over voters in memory, on a clock that the test moves. */
async function manual(): Promise<{
  clock: ManualClock;
  links: ReturnType<typeof memoryLinks>;
  one: Quorum;
  close(): Promise<void>;
}> {
  const clock = new ManualClock();
  const links = memoryLinks(3, clock);
  const one = quorumOver(links, { clock });
  await clock.settle();
  await countedVoters(one, 3);
  const close = async (): Promise<void> => {
    const closed = one[Symbol.asyncDispose]();
    // What is still asked of silent voters ends at its deadline.
    await clock.advance(patient.voterTimeoutMs);
    await closed;
  };
  return { clock, links, one, close };
}

/** What is asked of each voter, as `op token`. */
function listen(links: ReturnType<typeof memoryLinks>): string[][] {
  return links.map(({ link }) => {
    const asked: string[] = [];
    link.before = (batch) => {
      for (const item of batch) if ('token' in item) asked.push(item.op);
    };
    return asked;
  });
}

suite('validity is not checked after a quorum that came late', () => {
  test('redlock hands out a lock that has expired', async () => {
    const slow = gate('claim');
    const clients = [1, 2, 3].map(() =>
      voteClient(async () => await slow.hook([{ op: 'claim' } as Item]).then(() => 1)),
    );
    const acquiring = new Redlock(clients).acquire(['k'], 20, once);
    const begun = systemClock.now();
    while (systemClock.now() - begun < 30) await systemClock.sleep(5);
    slow.open();
    const lock = await acquiring;
    assert.ok(lock.expiration < Date.now());
  });

  test('ours: counted, given back, and tried again', async () => {
    const { clock, links, one, close } = await manual();
    const held = gate('claim');
    for (const { link } of links) link.after = held.hook;
    const claiming = one.claims.claim(freshKey(), retentionMs);
    await clock.advance(1_999); // of 3000: the voters' deadline is 2000, and a start needs a third of the lock
    held.open();
    await clock.advance(0);
    assert.deepEqual(one.events.of('lockFailed'), [['expired']]);
    await clock.advance(100);
    const result = await claiming;
    assert.ok(result.kind === 'won' && result.lease.attempt === 1);
    assert.ok(result.lease.validForMs() > 2_800, 'counted from the start of the round that won');
    await close();
  });
});

suite('retries vote against themselves', () => {
  test('redlock loses to its own key of the attempt before', async () => {
    const clients = [lockingClient('another'), lockingClient('a third'), lockingClient()];
    const acquiring = new Redlock(clients).acquire(['k'], 10_000, { retryCount: 1, retryDelay: 30, retryJitter: 0 });
    while (!clients.every(({ calls }) => calls.length === 1)) await systemClock.sleep(1);
    clients[1]!.holder = undefined;
    await assert.rejects(acquiring, { name: 'ExecutionError' });
    assert.deepEqual(
      clients.map(({ calls }) => calls.filter(({ args }) => args.length === 2).length),
      [2, 2, 2],
      'two attempts, of which the second had two nodes',
    );
  });

  test('ours: each round has a fresh token, and what the one before got is given back first', async () => {
    const { clock, links, one, close } = await manual();
    const key = freshKey();
    for (const [index, token] of [
      [0, 'another'],
      [1, 'a third'],
    ] as const)
      await take(links[index]!.link, key.id, token);
    const claiming = one.claims.claim(key, retentionMs);
    await clock.settle();
    await links[1]!.link.run([{ op: 'release', id: key.id, token: 'a third', takeBack: true }], '0');
    await clock.advance(100);
    const result = await claiming;
    assert.ok(result.kind === 'won' && result.lease.attempt === 1);
    await close();
  });
});

suite('an even number of nodes can end in a tie', () => {
  test('redlock never answers then', async () => {
    const acquiring = new Redlock([lockingClient('another'), lockingClient()]).acquire(['k'], 50, once);
    assert.equal(await isSettled(acquiring), false);
    await systemClock.sleep(60);
    assert.equal(await isSettled(acquiring), false, 'nor when the lock has long run out');
  });

  test('ours: the configuration refuses them, naming the number', () => {
    const text = (count: number): string =>
      `service: s\nupstream: {url: "http://127.0.0.1:1"}\nredis: {nodes: [${Array.from({ length: count }, (_, n) => `{url: "redis://r${n}:6379"}`).join(', ')}]}\n${routes()}`;
    for (const count of [2, 4, 6])
      assert.ok(complaints(text(count)).some((one) => one.includes(`found ${count} nodes`)));
  });
});

suite('nodes that never answer', () => {
  test('redlock waits for them for ever', async () => {
    const silent = (): Promise<never> => new Promise(() => {});
    const acquiring = new Redlock([voteClient(() => 1), voteClient(silent), voteClient(silent)]).acquire(
      ['k'],
      50,
      once,
    );
    await systemClock.sleep(60);
    assert.equal(await isSettled(acquiring), false);
  });

  test('ours: every voter is answered for at its deadline', async () => {
    const { clock, links, one, close } = await manual();
    for (const index of [1, 2]) links[index]!.link.before = async () => await new Promise(() => {});
    const claiming = one.claims.claim(freshKey(), retentionMs);
    await clock.advance(patient.voterTimeoutMs - 1);
    assert.equal(await isSettled(claiming), false);
    await clock.advance(1);
    assert.equal((await claiming).kind, 'unavailable');
    await close();
  });
});

suite('scripts given as strings', () => {
  const hashes = async (scripts: object): Promise<string> => {
    const client = voteClient(() => 1);
    await new Redlock([client], once, scripts).acquire(['k'], 50);
    return client.calls[0]!.hash;
  };

  test('redlock takes them without a word and runs its own', async () => {
    assert.equal(await hashes({ acquireScript: 'return 1' }), await hashes({}));
    assert.notEqual(await hashes({ acquireScript: () => 'return 1' }), await hashes({}));
  });

  test('ours: functions; a script that is not ours would be a bug, and is thrown', async () => {
    // A whole life under the package: acquire, extend and release are all recognised.
    const { clock, one, close } = await manual();
    const claiming = one.claims.claim(freshKey(), retentionMs);
    await clock.settle();
    const result = await claiming;
    assert.ok(result.kind === 'won');
    const ending = one.claims
      .extend(result.lease)
      .then(async (held) => await one.claims.release(result.lease, true).then(() => held));
    await clock.advance(100);
    assert.equal(await ending, true);
    await close();
  });
});

suite('releasing a lock that has run out', () => {
  test('redlock asks eleven times, and throws', async () => {
    const clients = [lockingClient(), lockingClient(), lockingClient()];
    const redlock = new Redlock(clients, { retryDelay: 1, retryJitter: 0 });
    const lock = await redlock.acquire(['k'], 10);
    for (const client of clients) client.holder = undefined;
    await assert.rejects(redlock.release(lock), { name: 'ExecutionError' });
    assert.equal(clients[0]!.calls.length, 1 + 11);
  });

  test('ours: asked once, and it is no error', async () => {
    const { clock, links, one, close } = await manual();
    const claiming = one.claims.claim(freshKey(), retentionMs);
    await clock.settle();
    const result = await claiming;
    assert.ok(result.kind === 'won');
    await clock.advance(patient.lockTtlMs + 1);
    const asked = listen(links);
    const releasing = one.claims.release(result.lease, true);
    await clock.settle();
    await releasing;
    await clock.advance(10_000);
    assert.deepEqual(asked, [['release'], ['release'], ['release']]);
    await close();
  });
});

suite('the wall clock', () => {
  test('redlock believes it: set back, a lock that ran out is still valid; set forward, one that lives cannot be extended', async () => {
    mock.timers.enable({ apis: ['Date'], now: 1_790_000_000_000 });
    try {
      const redlock = new Redlock([voteClient(() => 1)], once);
      const lock = await redlock.acquire(['k'], 20);
      await systemClock.sleep(25);
      mock.timers.setTime(1_789_999_000_000);
      assert.ok(lock.expiration > Date.now());
      mock.timers.setTime(1_790_001_000_000);
      await assert.rejects(redlock.extend(lock, 20), /already-expired/);
    } finally {
      mock.timers.reset();
    }
  });

  test('ours: validity is on the monotonic clock, and an extension does not ask the wall', async () => {
    mock.timers.enable({ apis: ['Date'], now: 1_790_000_000_000 });
    try {
      const { clock, one, close } = await manual();
      const claiming = one.claims.claim(freshKey(), retentionMs);
      await clock.settle();
      const result = await claiming;
      assert.ok(result.kind === 'won');
      const valid = result.lease.validForMs();
      for (const now of [1_789_999_000_000, 1_790_001_000_000]) {
        mock.timers.setTime(now);
        assert.equal(result.lease.validForMs(), valid);
        const extending = one.claims.extend(result.lease);
        await clock.settle();
        assert.equal(await extending, true);
      }
      await clock.advance(patient.lockTtlMs);
      mock.timers.setTime(1_789_999_000_000);
      assert.ok(result.lease.validForMs() <= 0 && !result.lease.mayStart());
      await close();
    } finally {
      mock.timers.reset();
    }
  });
});

suite('why a lock was refused', () => {
  test('redlock says the same of a lock that is taken and of nodes that are down, and stops at two of three', async () => {
    const late = Promise.withResolvers<number>();
    const down = voteClient(() => Promise.reject(new Error('Connection is closed.')));
    const refused = async (clients: ConstructorParameters<typeof Redlock>[0]): Promise<Error> =>
      await new Redlock(clients).acquire(['k'], 50, once).then(
        () => assert.fail('acquired'),
        (error: unknown) => error as Error,
      );
    const taken = await refused([
      lockingClient('another'),
      lockingClient('another'),
      voteClient(({ args }) => (args.length === 2 ? late.promise : 0)),
    ]);
    assert.equal(taken.message, (await refused([down, down, down])).message);
    late.resolve(1);
  });

  test('ours: the votes keep their reasons', async () => {
    const kinds: string[] = [];
    for (const answers of [
      ['B', 'B', 'B'],
      ['B', undefined, undefined],
      ['B', 'C', 'D'],
    ]) {
      const { clock, links, one, close } = await manual();
      const key = freshKey();
      for (const [index, token] of answers.entries()) {
        if (token === undefined) links[index]!.link.before = failing('claim', 'release');
        else await take(links[index]!.link, key.id, token);
      }
      const claiming = one.claims.claim(key, retentionMs);
      await clock.advance(patient.budgetMs);
      const result = await claiming;
      kinds.push(result.kind === 'held' && result.split ? 'split' : result.kind);
      await close();
    }
    assert.deepEqual(kinds, ['held', 'unavailable', 'split']);
  });
});

suite('after an acquire that failed', () => {
  test('redlock releases on every node, and waits for all of them before it says so', async () => {
    const clients = [lockingClient('another'), lockingClient('another'), lockingClient('another')];
    await assert.rejects(new Redlock(clients).acquire(['k'], 50, once));
    assert.deepEqual(
      clients.map(({ calls }) => calls.length),
      [2, 2, 2],
    );
  });

  test('ours: released where something may have been granted, and nobody waits for it', async () => {
    const { clock, links, one, close } = await manual();
    const key = freshKey();
    for (const index of [0, 1]) await take(links[index]!.link, key.id, 'B');
    const asked = listen(links);
    const claiming = one.claims.claim(key, retentionMs);
    await clock.settle();
    assert.equal((await claiming).kind, 'held');
    await clock.advance(100);
    assert.deepEqual(asked, [['claim'], ['claim'], ['claim', 'release']]);
    await close();
  });
});

suite('errors that begin with NOSCRIPT', () => {
  test('redlock sends the script again, past its own retryCount and after its own release', async () => {
    const client = voteClient(() => Promise.reject(new Error('NOSCRIPT No matching script.')));
    await assert.rejects(new Redlock([client]).acquire(['k'], 50, once));
    assert.equal(client.calls.length, 4, 'acquire and release, each twice');
  });

  test('ours: a vote against is never such an error, whatever the voter said', async () => {
    const { clock, links, one, close } = await manual();
    const asked = listen(links);
    for (const { link } of links)
      link.after = () => Promise.reject(new LinkError('noscript', new Error('NOSCRIPT No matching script.')));
    const claiming = one.claims.claim(freshKey(), retentionMs);
    await clock.settle();
    assert.equal((await claiming).kind, 'unavailable');
    assert.ok(
      asked.every((ops) => ops.filter((op) => op === 'claim').length === 2),
      'once, and once more after the script was loaded',
    );
    await clock.advance(10_000);
    await close();
  });
});

async function take(
  link: { run(batch: readonly Item[], tag: string): Promise<{ answers: readonly Answer[] }> },
  id: string,
  token: string,
): Promise<void> {
  const { answers } = await link.run([{ op: 'claim', id, token, lockMs: 600_000, recordMs: 600_000 }], '0');
  assert.equal(answers[0]!.status, 'ok');
}
