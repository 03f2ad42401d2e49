import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { done, ends, heldElsewhere, startProcess, type Copy, type Process } from '../support/copies.ts';

const kinds = (copies: readonly Copy[]) => copies.map((copy) => copy.kind());
const retryAfter = (copy: Copy): number => {
  const outcome = copy.outcome();
  assert.ok(outcome?.kind === 'in-progress', `${copy.name}: ${outcome?.kind}`);
  return outcome.retryAfterMs;
};

/** Nobody waits, no timer runs, and the event's next copy finds no room: it leads. */
async function assertNothingLeft(process: Process): Promise<void> {
  await process.clock.advance(300); // a watcher may be on its way out
  assert.equal(process.waiting(), 0);
  assert.equal(process.clock.pending, 0);
  const next = await process.copy('next', { waitMs: 60_000 });
  assert.ok(next.leads(), 'the next copy leads');
  await next.end(ends.refused);
  assert.equal(process.clock.pending, 0);
}

suite('one process', () => {
  test('one copy claims, and the others wait for it', async () => {
    const process = startProcess();
    const copies = await process.copies('abcde');
    await process.clock.advance(3_999);
    assert.deepEqual(process.turns, ['a']);
    assert.equal(process.waiting(), 4);
    assert.deepEqual(process.peeks, [], 'whose holder is in this process needs no watcher');
    await copies[0]!.end(ends.delivered);
    assert.deepEqual(kinds(copies), ['delivered', 'duplicate', 'duplicate', 'duplicate', 'duplicate']);
    assert.deepEqual(copies[3]!.outcome(), { kind: 'duplicate', done });
    assert.deepEqual(process.turns, ['a']);
    await assertNothingLeft(process);
  });

  test('events do not wait for one another', async () => {
    const process = startProcess();
    await process.copy('a', {}, 'one');
    const other = await process.copy('b', {}, 'two');
    assert.ok(other.leads());
  });

  test('an event that turns out to be done: all are duplicates', async () => {
    const process = startProcess();
    const copies = await process.copies('abc');
    await copies[0]!.end(ends.doneBefore);
    assert.deepEqual(kinds(copies), ['duplicate', 'duplicate', 'duplicate']);
    await assertNothingLeft(process);
  });

  for (const how of ['refused', 'unreachable', 'unavailable', 'overloaded', 'expired'] as const) {
    test(`after ${how} the oldest leads, then the next, one at a time`, async () => {
      const process = startProcess();
      const copies = await process.copies('abcd');
      const [a, b, c, d] = copies as [Copy, Copy, Copy, Copy];
      await a.end(ends[how]);
      assert.deepEqual(kinds(copies), [ends[how].outcome.kind, undefined, undefined, undefined]);
      assert.deepEqual(process.turns, ['a', 'b']);
      const late = await process.copy('e');
      await b.end(ends[how]);
      assert.ok(c.leads() && !d.leads() && !late.leads());
      await c.end(ends.delivered);
      assert.deepEqual(kinds([c, d, late]), ['delivered', 'duplicate', 'duplicate']);
      assert.deepEqual(process.turns, ['a', 'b', 'c']);
      assert.deepEqual(process.peeks, []);
      await assertNothingLeft(process);
    });
  }

  test('after an uncertain end all are told to come again when the lock left behind has run out', async () => {
    const process = startProcess();
    const [first, ...others] = await process.copies('abc');
    await process.clock.advance(2_000);
    await first!.end(ends.uncertain);
    assert.deepEqual(others.map(retryAfter), [30_000, 30_000]);
    assert.deepEqual(process.turns, ['a']);
    await assertNothingLeft(process);
  });

  test('a leader that throws keeps its error, and the next leads', async () => {
    const process = startProcess();
    const [a, b, c] = (await process.copies('abc')) as [Copy, Copy, Copy];
    const bug = new Error('a bug');
    await a.fail(bug);
    assert.equal(a.error(), bug);
    assert.ok(b.leads());
    await b.end(ends.delivered);
    assert.equal(c.kind(), 'duplicate');
    await assertNothingLeft(process);
  });

  test('each waiter gives up at the end of its own time', async () => {
    const process = startProcess();
    const a = await process.copy('a');
    const b = await process.copy('b', { waitMs: 1_000 });
    await process.clock.advance(500);
    const c = await process.copy('c', { waitMs: 1_000 });
    await process.clock.advance(499);
    assert.deepEqual(kinds([b, c]), [undefined, undefined]);
    await process.clock.advance(1);
    assert.deepEqual(kinds([b, c]), ['in-progress', undefined]);
    await process.clock.advance(500);
    assert.deepEqual(kinds([b, c]), ['in-progress', 'in-progress']);
    assert.ok(a.leads(), 'who leads is not hurried');
    await a.end(ends.delivered);
    await assertNothingLeft(process);
  });

  test('who gave up is not called any more', async () => {
    const process = startProcess();
    const a = await process.copy('a');
    await process.copy('b', { waitMs: 1_000 });
    const c = await process.copy('c');
    await process.clock.advance(1_000);
    await a.end(ends.refused);
    assert.deepEqual(process.turns, ['a', 'c']);
    await c.end(ends.refused);
    await assertNothingLeft(process);
  });

  test('a waiter whose turn comes late still leads, however long that takes', async () => {
    const process = startProcess();
    const [a, b, c] = (await process.copies('abc')) as [Copy, Copy, Copy];
    await process.clock.advance(3_999);
    await a.end(ends.refused);
    assert.ok(b.leads());
    await process.clock.advance(60_000);
    assert.deepEqual(kinds([b, c]), [undefined, 'in-progress']);
    await b.end(ends.delivered);
    assert.equal(b.kind(), 'delivered');
    await assertNothingLeft(process);
  });

  test('more waiters than the route allows are told to come again at once', async () => {
    const process = startProcess();
    const copies = await process.copies('abcde', { maxWaiters: 2 });
    assert.deepEqual(kinds(copies), [undefined, undefined, undefined, 'in-progress', 'in-progress']);
    assert.equal(process.waiting(), 2);
    await copies[0]!.end(ends.refused);
    const next = await process.copy('f', { maxWaiters: 2 });
    assert.equal(next.kind(), undefined, 'there is room again');
    await copies[1]!.end(ends.delivered);
    assert.deepEqual(kinds([copies[2]!, next]), ['duplicate', 'duplicate']);
    await assertNothingLeft(process);
  });

  test('who comes back from leading waits as the oldest, and the youngest makes way', async () => {
    const process = startProcess();
    const [a, b, c] = (await process.copies('abc', { maxWaiters: 2 })) as [Copy, Copy, Copy];
    await a.end(heldElsewhere());
    assert.deepEqual(kinds([a, b, c]), [undefined, undefined, 'in-progress']);
    assert.equal(process.waiting(), 2);
    process.standing({ kind: 'free' });
    await process.clock.advance(100);
    assert.deepEqual(process.turns, ['a', 'a']);
    await a.end(ends.refused);
    assert.ok(b.leads());
    await b.end(ends.refused);
    await assertNothingLeft(process);
  });

  test('what is left of the lock is told: the leader renews it every third of its life', async () => {
    const process = startProcess();
    const a = await process.copy('a');
    await a.forwards();
    for (const [passedMs, leftMs] of [
      [6_000, 14_000],
      [6_000, 20_000 - (12_000 - 20_000 / 3)],
    ] as const) {
      await process.clock.advance(passedMs);
      const copy = await process.copy('b', { policy: 'reject' });
      assert.ok(Math.abs(retryAfter(copy) - leftMs) < 1, `${retryAfter(copy)}`);
    }
    await a.end(ends.refused);
    await assertNothingLeft(process);
  });
});

suite('held by another process', () => {
  test('one watcher for all copies: it peeks after 50 ms, and ever more slowly down to every 250 ms', async () => {
    const process = startProcess();
    const startedMs = process.clock.now();
    const [a, b] = (await process.copies('ab')) as [Copy, Copy];
    await a.end(heldElsewhere());
    const late = await process.copy('c');
    await process.clock.advance(2_000);
    const pauses = process.peeks.map((at, n) => at - (process.peeks[n - 1] ?? startedMs));
    assert.equal(pauses[0], 50);
    assert.deepEqual(
      [...pauses].sort((one, two) => one - two),
      pauses,
      pauses.join(),
    );
    assert.deepEqual(pauses.slice(-4), [250, 250, 250, 250]);
    assert.deepEqual(process.turns, ['a'], 'nobody claims meanwhile');
    process.standing({ kind: 'done', done });
    await process.clock.advance(250);
    assert.deepEqual(kinds([a, b, late]), ['duplicate', 'duplicate', 'duplicate']);
    await assertNothingLeft(process);
  });

  test('free: the oldest alone claims, each process at a moment of its own within 50 ms, and the others wait for it', async () => {
    const delays = new Set<number>();
    for (let seed = 1; seed <= 20; seed += 1) {
      const process = startProcess(seed);
      const [a, b] = (await process.copies('ab')) as [Copy, Copy];
      await a.end(heldElsewhere());
      process.standing({ kind: 'free' });
      await process.clock.advance(100);
      assert.deepEqual(process.turns, ['a', 'a']);
      const delayMs = process.turnsMs[1]! - process.peeks[0]!;
      assert.ok(delayMs >= 0 && delayMs <= 50, `${delayMs}`);
      delays.add(delayMs);
      await process.clock.advance(1_000);
      assert.equal(process.peeks.length, 1, 'who waits for a leader in this process does not peek');
      await a.end(ends.refused);
      assert.deepEqual(process.turns, ['a', 'a', 'b']);
      await b.end(ends.delivered);
      await assertNothingLeft(process);
    }
    assert.equal(delays.size, 20);
  });

  test('free, but another process was faster: the same goes on', async () => {
    const process = startProcess();
    const [a, b] = (await process.copies('ab')) as [Copy, Copy];
    await a.end(heldElsewhere());
    process.standing({ kind: 'free' }, { kind: 'held', leftMs: 9_000, unknown: false }, { kind: 'free' });
    await process.clock.advance(100);
    await a.end(heldElsewhere());
    await process.clock.advance(300);
    assert.deepEqual(process.turns, ['a', 'a', 'a']);
    assert.equal(b.kind(), undefined);
    await a.end(ends.delivered);
    assert.equal(b.kind(), 'duplicate');
    await assertNothingLeft(process);
  });

  test('the watch goes on when the oldest gives up, and ends with the last', async () => {
    const process = startProcess();
    const a = await process.copy('a', { waitMs: 1_000 });
    const b = await process.copy('b', { waitMs: 2_000 });
    await a.end(heldElsewhere());
    await process.clock.advance(1_500);
    assert.deepEqual(kinds([a, b]), ['in-progress', undefined]);
    const peeks = process.peeks.length;
    await process.clock.advance(600);
    assert.equal(b.kind(), 'in-progress');
    assert.ok(process.peeks.length > peeks);
    const last = process.peeks.length;
    await process.clock.advance(1_000);
    assert.equal(process.peeks.length, last);
    await assertNothingLeft(process);
  });

  test('a watcher on its way out does not touch the room that was opened meanwhile', async () => {
    const process = startProcess();
    const a = await process.copy('a', { waitMs: 60 });
    await a.end(heldElsewhere());
    await process.clock.advance(60);
    const b = await process.copy('b');
    await process.clock.advance(300);
    const c = await process.copy('c');
    assert.ok(b.leads() && !c.leads());
    await b.end(ends.delivered);
    assert.equal(c.kind(), 'duplicate');
    await assertNothingLeft(process);
  });

  test('who led for longer than it may wait is answered when it finds the event held', async () => {
    const process = startProcess();
    const a = await process.copy('a', { waitMs: 100 });
    await process.clock.advance(200);
    await a.end(heldElsewhere(7_000));
    await process.clock.advance(0);
    assert.equal(retryAfter(a), 7_000);
    await assertNothingLeft(process);
  });

  test('unknown outcome, told by the claim or by a peek: all are told to come again', async () => {
    const process = startProcess();
    const told = await process.copies('abc');
    await told[0]!.end(heldElsewhere(12_000, { unknown: true }));
    assert.deepEqual(told.map(retryAfter), [12_000, 12_000, 12_000]);
    const seen = await process.copies('de');
    await seen[0]!.end(heldElsewhere());
    process.standing({ kind: 'held', leftMs: 9_000, unknown: true });
    await process.clock.advance(50);
    assert.deepEqual(seen.map(retryAfter), [9_000, 9_000]);
    await assertNothingLeft(process);
  });

  test('no quorum to peek at: they wait on, and what is told counts down from what was last known', async () => {
    const process = startProcess();
    const a = await process.copy('a');
    await a.end(heldElsewhere(15_000));
    process.standing({ kind: 'unavailable' });
    await process.clock.advance(4_000);
    assert.equal(retryAfter(a), 11_000);
    assert.deepEqual(process.turns, ['a']);
    await assertNothingLeft(process);
  });

  test('a split vote is waited on like any other', async () => {
    const process = startProcess();
    const a = await process.copy('a');
    await a.end(heldElsewhere(0, { split: true }));
    process.standing({ kind: 'free' });
    await process.clock.advance(100);
    assert.ok(a.leads());
    await a.end(ends.delivered);
    await assertNothingLeft(process);
  });

  test('a peek that throws is told once, and the oldest claims', async () => {
    const process = startProcess();
    const [a, b] = (await process.copies('ab')) as [Copy, Copy];
    await a.end(heldElsewhere());
    process.standing(new Error('a bug'));
    await process.clock.advance(50);
    assert.equal(process.warnings(), 1);
    assert.ok(a.leads());
    await a.end(ends.delivered);
    assert.equal(b.kind(), 'duplicate');
    await assertNothingLeft(process);
  });
});

test('where a new configuration has mixed policies, a claim is waited for all the same', async () => {
  const process = startProcess();
  const [a, b] = (await process.copies('ab')) as [Copy, Copy];
  await a.forwards();
  await a.end(ends.refused);
  const c = await process.copy('c', { policy: 'reject' });
  assert.equal(c.kind(), undefined);
  await b.end(ends.doneBefore);
  assert.equal(c.kind(), 'duplicate');
  await assertNothingLeft(process);
});

for (const policy of ['reject', 'accept'] as const) {
  suite(`policy ${policy}`, () => {
    test('a copy waits for the claim of the first, and not for the application', async () => {
      const process = startProcess();
      const [a, b] = (await process.copies('ab', { policy })) as [Copy, Copy];
      assert.equal(b.kind(), undefined);
      await a.forwards();
      assert.equal(retryAfter(b), 20_000);
      const c = await process.copy('c', { policy });
      assert.equal(retryAfter(c), 20_000);
      await a.end(ends.refused);
      const d = await process.copy('d', { policy });
      assert.ok(d.leads());
      await d.end(heldElsewhere(8_000));
      assert.deepEqual(d.outcome(), { kind: 'in-progress', retryAfterMs: 8_000 });
      assert.deepEqual(process.peeks, []);
      await assertNothingLeft(process);
    });

    test('copies of an event that turns out to be done are duplicates', async () => {
      const process = startProcess();
      const copies = await process.copies('abc', { policy });
      await copies[0]!.end(ends.doneBefore);
      assert.deepEqual(kinds(copies), ['duplicate', 'duplicate', 'duplicate']);
      await assertNothingLeft(process);
    });

    test('when the first gets no quorum, the next tries for itself', async () => {
      const process = startProcess();
      const [a, b] = (await process.copies('ab', { policy })) as [Copy, Copy];
      await a.end(ends.unavailable);
      assert.ok(b.leads());
      await b.end(ends.unavailable);
      await assertNothingLeft(process);
    });

    test('when another process holds the event, all are told so', async () => {
      const process = startProcess();
      const copies = await process.copies('abc', { policy });
      await copies[0]!.end(heldElsewhere(7_000));
      assert.deepEqual(copies.map(retryAfter), [7_000, 7_000, 7_000]);
      await assertNothingLeft(process);
    });

    test('where maybe nobody holds the event, that is told', async () => {
      const process = startProcess();
      const copies = await process.copies('ab', { policy });
      await copies[0]!.end(heldElsewhere(0, { split: true }));
      const split = { kind: 'in-progress', retryAfterMs: 0, split: true };
      assert.deepEqual(
        copies.map((copy) => copy.outcome()),
        [split, split],
      );
      await assertNothingLeft(process);
    });
  });
}
