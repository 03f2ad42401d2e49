/**
 * What every implementation of the port `Claims` does. Time is real, locks live three seconds, and each
 * test has an event of its own, so they run at the same time.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import type { DeliveryKey } from '../../src/core/delivery.ts';
import type { ClaimResult, Claims, Completion, Lease, Standing } from '../../src/core/ports.ts';
import { until } from '../../src/demo/until.ts';
import { freshKey, patient } from '../support/quorum.ts';

/** Two gateways of one service. */
export interface Pair extends AsyncDisposable {
  readonly one: Claims;
  readonly two: Claims;
}

const { lockTtlMs, unknownHoldMs } = patient;
const retentionMs = 600_000;
const ok: Completion = { status: 200, traceId: '', reply: undefined };
const created: Completion = {
  status: 201,
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  reply: { contentType: 'text/plain; charset=utf-8', body: Buffer.from('thanks ✓\0') },
};

export function claimsSuite(name: string, start: () => Promise<Pair>): void {
  suite(name, { concurrency: true }, () => {
    let pair: Pair;
    before(async () => void (pair = await start()));
    after(async () => await pair[Symbol.asyncDispose]());

    test('the first claim wins attempt 1, copies are held for no longer than the lock lives', async () => {
      const key = freshKey();
      const lease = await won(pair.one, key);
      assert.deepEqual([lease.attempt, lease.key], [1, key]);
      for (const claims of [pair.one, pair.two]) {
        const copy = await claims.claim(key, retentionMs);
        assert.ok(copy.kind === 'held' && !copy.unknown && !copy.split, copy.kind);
        assert.ok(copy.leftMs > 0 && copy.leftMs <= lockTtlMs, `${copy.leftMs}`);
      }
    });

    test('events do not know of each other', async () => {
      const leases = await Promise.all([freshKey(), freshKey()].map(async (key) => await won(pair.one, key)));
      assert.deepEqual(
        leases.map((lease) => lease.attempt),
        [1, 1],
      );
    });

    test('completed: done for everybody, with what the application answered', async () => {
      const key = freshKey();
      const before = clock.wall();
      await pair.one.complete(await won(pair.one, key), created);
      for (const claims of [pair.one, pair.two]) {
        const copy = await claims.claim(key, retentionMs);
        assert.ok(copy.kind === 'done', copy.kind);
        const { wallMs, ...rest } = copy.done;
        assert.deepEqual(rest, created);
        assert.ok(wallMs >= before && wallMs <= clock.wall());
      }
    });

    for (const reply of [undefined, 'omitted'] as const) {
      test(`completed with a reply that is ${reply}: read back the same`, async () => {
        const key = freshKey();
        await pair.one.complete(await won(pair.one, key), { ...ok, reply });
        const copy = await pair.two.claim(key, retentionMs);
        assert.ok(copy.kind === 'done' && copy.done.reply === reply);
      });
    }

    test('released before any byte: the attempt is taken back', async () => {
      const key = freshKey();
      await pair.one.release(await won(pair.one, key), false);
      assert.equal((await won(pair.two, key)).attempt, 1);
    });

    test('released after bytes were sent: the next attempt has the next number', async () => {
      const key = freshKey();
      for (const attempt of [1, 2, 3]) {
        const lease = await won(attempt % 2 === 0 ? pair.two : pair.one, key);
        assert.equal(lease.attempt, attempt);
        await pair.one.release(lease, true);
        await free(pair.one, key);
      }
      await pair.one.release(await won(pair.one, key), false);
      assert.equal((await won(pair.one, key)).attempt, 4, 'of the fourth no byte was sent');
    });

    test('left: held with unknown outcome, for unknownHold and no longer; then attempt 2', async () => {
      const key = freshKey();
      const lease = await won(pair.one, key);
      await pair.one.leave(lease);
      await unknownFor(async () => await pair.two.claim(key, retentionMs));
      const left = clock.now();
      await free(pair.two, key);
      assert.ok(clock.now() - left < lockTtlMs - 500, 'sooner than the lock would have run out by itself');
      assert.equal((await won(pair.two, key)).attempt, 2);
    });

    test('left, then a late success within unknownHold: done', async () => {
      const key = freshKey();
      const lease = await won(pair.one, key);
      await pair.one.leave(lease);
      await pair.one.complete(lease, created);
      await stands(pair.two, key, 'done');
      assert.equal((await pair.two.claim(key, retentionMs)).kind, 'done');
    });

    test('left, then a late failure within unknownHold: free at once, as attempt 2', async () => {
      const key = freshKey();
      const lease = await won(pair.one, key);
      await pair.one.leave(lease);
      await pair.one.release(lease, true);
      assert.equal((await won(pair.two, key)).attempt, 2);
    });

    test('a success whose lock has passed on is written all the same, and stays the first', async () => {
      const key = freshKey();
      const first = await won(pair.one, key);
      await pair.one.leave(first);
      await free(pair.two, key);
      const second = await won(pair.two, key);
      await pair.one.complete(first, created);
      const copy = await pair.two.claim(key, retentionMs);
      assert.ok(copy.kind === 'done' && copy.done.status === 201, copy.kind);
      await pair.one.peek(key); // goes to every voter after the completion
      await pair.two.complete(second, ok);
      const later = await pair.one.claim(key, retentionMs);
      assert.ok(later.kind === 'done' && later.done.status === 201, later.kind);
    });

    test('a release never frees the lock of another', async () => {
      const key = freshKey();
      const first = await won(pair.one, key);
      await pair.one.leave(first);
      await free(pair.two, key);
      await won(pair.two, key);
      for (const sent of [false, true]) {
        await pair.one.release(first, sent);
        const copy = await pair.one.claim(key, retentionMs);
        assert.ok(copy.kind === 'held' && !copy.unknown, copy.kind);
      }
      assert.equal(await pair.one.extend(first), false, 'nor does an extension get it back');
      await pair.one.leave(first);
      const standing = await pair.two.peek(key);
      assert.ok(standing.kind === 'held' && !standing.unknown, standing.kind);
    });

    test('a release after completion changes nothing, nor does a second completion', async () => {
      const key = freshKey();
      const lease = await won(pair.one, key);
      await pair.one.complete(lease, created);
      await pair.one.release(lease, false);
      await pair.one.complete(lease, ok);
      const copy = await pair.two.claim(key, retentionMs);
      assert.ok(copy.kind === 'done' && copy.done.status === 201, copy.kind);
    });

    test('extended in time, a lock outlives its life many times over', async () => {
      const key = freshKey();
      const lease = await won(pair.one, key);
      const begun = clock.now();
      while (clock.now() - begun < 1.5 * lockTtlMs) {
        await clock.sleep(lockTtlMs / 3);
        assert.equal(await pair.one.extend(lease), true);
        assert.ok(lease.mayStart());
        assert.equal((await pair.two.claim(key, retentionMs)).kind, 'held');
      }
      await pair.one.complete(lease, ok);
      assert.equal((await pair.two.claim(key, retentionMs)).kind, 'done');
    });

    test('validity: never more than the lock, no start in its last third, over when the lock is', async () => {
      const key = freshKey();
      const begun = clock.now();
      const lease = await won(pair.one, key);
      assert.ok(lease.validForMs() <= lockTtlMs && lease.validForMs() > lockTtlMs / 3 && lease.mayStart());
      await until(clock, 'the last third', () => (lease.mayStart() ? undefined : true));
      assert.ok(lease.validForMs() <= lockTtlMs / 3);
      assert.equal((await pair.two.claim(key, retentionMs)).kind, 'held', 'still held: nobody else may start either');
      await until(clock, 'the end of its validity', () => (lease.validForMs() > 0 ? undefined : true));
      assert.ok(clock.now() - begun <= lockTtlMs + 500);
      await free(pair.two, key);
      assert.equal(await pair.one.extend(lease), false);
      assert.ok(lease.validForMs() <= 0);
      assert.equal((await won(pair.two, key)).attempt, 2);
    });

    test('twenty claims at the same instant over two gateways: one wins', async () => {
      const key = freshKey();
      const claims = Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? pair.one : pair.two));
      const results = await Promise.all(claims.map(async (each) => await each.claim(key, retentionMs)));
      const winners = results.flatMap((result) => (result.kind === 'won' ? [result.lease] : []));
      assert.deepEqual(
        winners.map((lease) => lease.attempt),
        [1],
      );
      assert.ok(results.every((result) => result.kind === 'won' || result.kind === 'held'));
      await pair.one.complete(winners[0]!, ok);
      assert.equal((await pair.two.claim(key, retentionMs)).kind, 'done');
    });

    test('a done record lives as long as the claim said, then the event is new', async () => {
      const key = freshKey();
      const result = await pair.one.claim(key, 700);
      assert.ok(result.kind === 'won');
      await pair.one.complete(result.lease, ok);
      assert.equal((await pair.two.claim(key, 700)).kind, 'done');
      await free(pair.two, key);
      assert.equal((await won(pair.two, key)).attempt, 1);
    });

    test('a failed attempt is remembered for as long as it could be held, however short the retention', async () => {
      const key = freshKey();
      const result = await pair.one.claim(key, 1);
      assert.ok(result.kind === 'won');
      await pair.one.release(result.lease, true);
      await clock.sleep(5);
      assert.equal((await won(pair.two, key)).attempt, 2);
    });

    test('peek sees what a claim would meet, and changes nothing', async () => {
      const key = freshKey();
      assert.equal((await pair.one.peek(key)).kind, 'free');
      assert.equal((await pair.two.peek(key)).kind, 'free');
      const lease = await won(pair.one, key);
      assert.equal(lease.attempt, 1);
      const held = await pair.two.peek(key);
      assert.ok(held.kind === 'held' && !held.unknown && held.leftMs > 0 && held.leftMs <= lockTtlMs);
      await pair.one.leave(lease);
      await unknownFor(async () => await pair.two.peek(key));
      await pair.one.complete(lease, created);
      const done = await pair.two.peek(key);
      assert.ok(done.kind === 'done' && done.done.status === 201);
    });
  });
}

/** Claims until it is won: a gateway that has just seen an event freed elsewhere may meet the last of a release. */
async function won(claims: Claims, key: DeliveryKey): Promise<Lease> {
  return await until(clock, 'a claim to be won', async () => {
    const result = await claims.claim(key, retentionMs);
    return result.kind === 'won' ? result.lease : undefined;
  });
}

/** Leaving ends with a quorum: the others may still show the life that the lock had before. */
async function unknownFor(look: () => Promise<ClaimResult | Standing>): Promise<void> {
  await until(clock, 'held with unknown outcome, for unknownHold at most', async () => {
    const found = await look();
    assert.ok(found.kind === 'held' && found.unknown && found.leftMs > 0, found.kind);
    return found.leftMs <= unknownHoldMs || undefined;
  });
}

async function stands(claims: Claims, key: DeliveryKey, kind: Standing['kind']): Promise<void> {
  await until(clock, `the event to be ${kind}`, async () =>
    (await claims.peek(key)).kind === kind ? true : undefined,
  );
}

async function free(claims: Claims, key: DeliveryKey): Promise<void> {
  await stands(claims, key, 'free');
}
