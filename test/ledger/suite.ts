/** What every implementation of the port `Ledger` does. Each test has keys of its own, so they run at the same time. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import type { Done } from '../../src/core/delivery.ts';
import type { Ledger, RowLease } from '../../src/core/ports.ts';
import { until } from '../../src/demo/until.ts';
import { freshKey } from '../support/quorum.ts';

/** Two gateways of one service. */
export interface Ledgers extends AsyncDisposable {
  readonly one: Ledger;
  readonly two: Ledger;
}

const done: Done = {
  status: 201,
  wallMs: 1_790_000_000_000,
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  reply: { contentType: 'text/plain; charset=utf-8', body: Buffer.from('thanks ✓\0') },
  fingerprint: 'abc_DEF-',
};
let tokens = 0;

/** A lease on an event of its own. */
function lease(more: Partial<RowLease> = {}): RowLease {
  tokens += 1;
  return { id: freshKey().id, token: `token-${tokens}`, attempt: 1, leaseMs: 30_000, keepMs: 600_000, ...more };
}
const rival = (of: RowLease, more: Partial<RowLease> = {}): RowLease => ({ ...lease(more), id: of.id });

export function ledgerSuite(name: string, start: () => Promise<Ledgers>): void {
  suite(name, { concurrency: true }, () => {
    let ledgers: Ledgers;
    before(async () => void (ledgers = await start()));
    after(async () => await ledgers[Symbol.asyncDispose]());

    test('the first takes attempt 1, its own token finds it again, others are held', async () => {
      const { one, two } = ledgers;
      const mine = lease();
      for (const each of [one, two]) assert.deepEqual(await each.take(mine), { kind: 'ours', attempt: 1 });
      const other = await two.take(rival(mine));
      assert.ok(other.kind === 'held' && !other.unknown && other.leftMs > 0 && other.leftMs <= 30_000, other.kind);
    });

    test('the attempt is the larger of what the row and the claim have counted', async () => {
      const { one } = ledgers;
      const mine = lease({ attempt: 4 });
      assert.deepEqual(await one.take(mine), { kind: 'ours', attempt: 4 });
      assert.equal(await one.release({ ...mine, attempt: 4 }, false), true);
      assert.deepEqual(await one.take(rival(mine, { attempt: 1 })), { kind: 'ours', attempt: 5 });
    });

    test('fifty at the same instant: one has it, and every one is answered', async () => {
      const { one, two } = ledgers;
      const mine = lease();
      const taken = await Promise.all(
        Array.from({ length: 50 }, async (_, i) => await (i % 2 === 0 ? one : two).take(rival(mine))),
      );
      assert.equal(taken.filter(({ kind }) => kind === 'ours').length, 1);
      assert.equal(taken.filter(({ kind }) => kind === 'held').length, 49);
    });

    test('done: for everybody, with all that was written; the first one stays', async () => {
      const { one, two } = ledgers;
      const mine = lease();
      await one.take(mine);
      assert.equal(await one.complete(mine, done), 'written');
      assert.equal(
        await two.complete(rival(mine, { attempt: 2 }), { ...done, status: 200, reply: 'omitted' }),
        'written',
      );
      for (const each of [one, two]) {
        const found = await each.take(rival(mine));
        assert.ok(found.kind === 'done', found.kind);
        assert.deepEqual(found.done, done);
        assert.equal(found.attempt, 2);
        assert.ok(found.leftMs > 0 && found.leftMs <= 600_000);
      }
      assert.equal((await one.extend(mine, false)).kind, 'done');
    });

    for (const reply of [undefined, 'omitted'] as const) {
      test(`done with a reply that is ${reply}, where no row was: read back the same`, async () => {
        const mine = lease();
        const plain: Done = { status: 204, wallMs: 1, traceId: '', reply };
        await ledgers.one.complete(mine, plain);
        const found = await ledgers.two.look(mine.id);
        assert.ok(typeof found === 'object');
        assert.deepEqual(found.done, plain);
      });
    }

    test('released before any byte: the attempt is taken back, once, and by its owner alone', async () => {
      const { one, two } = ledgers;
      const mine = lease();
      await one.take(mine);
      assert.equal(await two.release(rival(mine), true), true);
      assert.equal((await two.take(rival(mine))).kind, 'held', 'only its owner releases it');
      for (const _ of [1, 2]) assert.equal(await one.release(mine, true), true);
      const next = rival(mine);
      assert.deepEqual(await two.take(next), { kind: 'ours', attempt: 1 });
      await one.release(mine, true);
      assert.equal((await one.take(rival(mine))).kind, 'held', 'a release that comes again frees nobody');
    });

    test('released after bytes were sent: free at once, for the next attempt', async () => {
      const { one, two } = ledgers;
      const mine = lease();
      await one.take(mine);
      await one.release(mine, false);
      assert.deepEqual(await two.take(rival(mine)), { kind: 'ours', attempt: 2 });
    });

    test('a lease that has run out is free; its owner can move it on until somebody takes it', async () => {
      const { one, two } = ledgers;
      const mine = lease({ leaseMs: 30 });
      await one.take(mine);
      await ends(one, mine.id);
      assert.deepEqual(await one.extend(mine, false), { kind: 'ours', attempt: 1 });
      await ends(one, mine.id);
      assert.deepEqual(await two.take(rival(mine)), { kind: 'ours', attempt: 2 });
      assert.equal((await one.extend(mine, false)).kind, 'held');
      assert.equal(await one.complete(mine, done), 'written', 'its success is a success all the same');
      assert.equal((await two.take(rival(mine))).kind, 'done');
    });

    test('moved on where no row is: put there, and nothing is counted', async () => {
      const mine = lease({ attempt: 3 });
      assert.deepEqual(await ledgers.one.extend(mine, false), { kind: 'ours', attempt: 3 });
      assert.deepEqual(await ledgers.one.extend(mine, true), { kind: 'ours', attempt: 3 });
      const other = await ledgers.two.take(rival(mine));
      assert.ok(other.kind === 'held' && other.unknown, 'its outcome is unknown');
    });

    test('forgotten: the next attempt is a new one, and completions up to the floor are refused', async () => {
      const { one, two } = ledgers;
      const mine = lease();
      await one.take(mine);
      const running = await two.forget(mine.id, 600_000, false);
      assert.ok(running.kind === 'in-progress' && running.leftMs > 0);
      await one.complete(mine, done);
      assert.deepEqual(await two.forget(mine.id, 600_000, false), { kind: 'forgotten', attempt: 1, running: false });
      assert.equal(await one.complete(mine, done), 'forgotten');
      const next = rival(mine);
      assert.deepEqual(await one.take(next), { kind: 'ours', attempt: 2 });
      assert.equal(await one.complete({ ...next, attempt: 2 }, done), 'written');
      assert.equal((await two.take(rival(mine))).kind, 'done');
    });

    test('forgotten by force while it runs: its owner keeps the lease, and its completion is refused', async () => {
      const { one, two } = ledgers;
      const mine = lease();
      await one.take(mine);
      assert.deepEqual(await two.forget(mine.id, 600_000, true), { kind: 'forgotten', attempt: 1, running: true });
      assert.equal((await two.take(rival(mine))).kind, 'held');
      assert.equal(await one.complete(mine, done), 'forgotten');
      assert.deepEqual(await two.take(rival(mine)), { kind: 'ours', attempt: 2 });
    });

    test('what nobody knows cannot be forgotten, and looks like nothing', async () => {
      const { id } = lease();
      assert.deepEqual(await ledgers.one.forget(id, 600_000, false), { kind: 'unknown' });
      assert.equal(await ledgers.one.look(id), 'none');
    });

    test('a row that has had its time counts for nobody', async () => {
      const { one, two } = ledgers;
      const mine = lease({ keepMs: 30, leaseMs: 10 });
      await one.take(mine);
      await one.complete(mine, done);
      await until(clock, 'the row to have had its time', async () =>
        (await two.look(mine.id)) === 'none' ? true : undefined,
      );
      assert.deepEqual(await two.take(rival(mine)), { kind: 'ours', attempt: 1 });
    });

    test('versions: the newer of both stays, and a pending one gives way to the one before it', async () => {
      const { id } = lease();
      const change = { id, applied: '', pending: '', instead: '', keepMs: 600_000 };
      const { one, two } = ledgers;
      assert.deepEqual(await one.order({ ...change, pending: '5' }), { applied: '', pending: '' });
      assert.deepEqual(await two.order({ ...change, pending: '7' }), { applied: '', pending: '5' });
      assert.deepEqual(await one.order({ ...change, instead: '7', pending: '5' }), { applied: '', pending: '7' });
      assert.deepEqual(await two.order({ ...change, applied: '5' }), { applied: '', pending: '5' });
      assert.deepEqual(await two.order({ ...change, applied: '3', pending: '4' }), { applied: '5', pending: '5' });
      assert.deepEqual(await two.order({ ...change, instead: '4', pending: '' }), { applied: '5', pending: '5' });
      assert.deepEqual(await one.order(change), { applied: '5', pending: '5' });
    });
  });
}

async function ends(ledger: Ledger, id: string): Promise<void> {
  await until(clock, 'the lease to run out', async () => {
    const row = await ledger.look(id);
    return typeof row === 'object' && row.lease === undefined ? true : undefined;
  });
}
