/** Whatever comes in whatever order: nobody leads beside another, nobody is forgotten, and nothing is left. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Standing } from '../../src/core/ports.ts';
import { done, ends, heldElsewhere, startProcess, type Copy, type Process } from '../support/copies.ts';

const waits = [0, 300, 1_000, 4_000];
const longestWaitMs = 4_000;

const led = fc.constantFrom(...Object.values(ends), heldElsewhere(), heldElsewhere(5_000, { unknown: true }));
const standing = fc.constantFrom<Standing>(
  { kind: 'free' },
  { kind: 'done', done },
  { kind: 'unavailable' },
  { kind: 'held', leftMs: 9_000, unknown: false },
  { kind: 'held', leftMs: 9_000, unknown: true },
);
const arrive = fc.record({
  waitMs: fc.constantFrom(...waits),
  maxWaiters: fc.integer({ min: 1, max: 4 }),
  policy: fc.constantFrom('wait', 'wait', 'reject', 'accept'),
});
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ arrive }) },
  { weight: 2, arbitrary: fc.record({ forwards: fc.constant(true) }) },
  { weight: 3, arbitrary: fc.record({ end: led }) },
  { weight: 1, arbitrary: fc.record({ fail: fc.constant(true) }) },
  { weight: 2, arbitrary: fc.record({ standing }) },
  { weight: 3, arbitrary: fc.record({ passMs: fc.constantFrom(1, 50, 250, 1_000) }) },
);

interface Arrival {
  readonly copy: Copy;
  readonly untilMs: number;
}

test('any schedule of copies, ends and peeks', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.nat(), async (steps, seed) => {
      const process = startProcess(seed);
      const arrivals: Arrival[] = [];
      for (const one of steps) {
        if ('arrive' in one) {
          const untilMs = process.clock.now() + one.arrive.waitMs;
          arrivals.push({ copy: await process.copy(`${arrivals.length}`, one.arrive), untilMs });
          assert.ok(process.waiting() <= 4);
        } else if ('standing' in one) {
          process.standing(one.standing);
        } else if ('passMs' in one) {
          await process.clock.advance(one.passMs);
        } else {
          const leader = arrivals.find(({ copy }) => copy.leads())?.copy;
          if ('forwards' in one) await leader?.forwards();
          else await ('end' in one ? leader?.end(one.end) : leader?.fail(new Error('a bug')));
          await process.clock.advance(0);
        }
        check(process, arrivals);
      }
      process.standing({ kind: 'held', leftMs: 9_000, unknown: false });
      await process.clock.advance(longestWaitMs);
      for (
        let leader = arrivals.find(({ copy }) => copy.leads());
        leader;
        leader = arrivals.find(({ copy }) => copy.leads())
      ) {
        await leader.copy.end(ends.refused);
      }
      await process.clock.advance(300);
      assert.deepEqual(
        arrivals.filter(({ copy }) => unanswered(copy)).map(({ copy }) => copy.name),
        [],
      );
      assert.equal(process.waiting(), 0);
      assert.equal(process.clock.pending, 0);
      assert.ok((await process.copy('last')).leads(), 'the room is gone');
    }),
    { numRuns: 300 },
  );
});

const unanswered = (copy: Copy): boolean => copy.outcome() === undefined && copy.error() === undefined;

function check(process: Process, arrivals: readonly Arrival[]): void {
  assert.ok(arrivals.filter(({ copy }) => copy.leads()).length <= 1, 'at most one leads');
  const now = process.clock.now();
  const overdue = arrivals.filter(({ copy, untilMs }) => unanswered(copy) && !copy.leads() && untilMs < now);
  assert.deepEqual(
    overdue.map(({ copy }) => copy.name),
    [],
    'nobody waits for longer than it may',
  );
}
