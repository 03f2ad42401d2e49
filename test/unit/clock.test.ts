import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { ManualClock } from '../support/manual-clock.ts';

test('a timer longer than Node can count waits instead of firing at once', async () => {
  let fired = false;
  const cancel = systemClock.timer(2 ** 31 + 1_000, () => (fired = true));
  await systemClock.sleep(10);
  cancel();
  assert.equal(fired, false);
});

test('the manual clock lets everything run that can run before time moves', async () => {
  const clock = new ManualClock();
  const seen: string[] = [];
  clock.timer(10, () => {
    void (async () => {
      for (let i = 0; i < 20; i++) await Promise.resolve();
      clock.soon(() => clock.soon(() => seen.push(`chain at ${clock.now() - begun}`)));
    })();
  });
  clock.timer(11, () => seen.push(`next at ${clock.now() - begun}`));
  const begun = clock.now();
  await clock.advance(20);
  assert.deepEqual(seen, ['chain at 10', 'next at 11']);
  assert.equal(clock.now() - begun, 20);
});

test('a timer that is set by a timer fires within the same advance', async () => {
  const clock = new ManualClock();
  const begun = clock.now();
  const at: number[] = [];
  const beat = (): void => {
    at.push(clock.now() - begun);
    if (at.length < 3) clock.timer(5, beat);
  };
  clock.timer(5, beat);
  await clock.advance(16);
  assert.deepEqual(at, [5, 10, 15]);
  assert.equal(clock.pending, 0);
});

test('the manual clock draws the same numbers from the same seed', () => {
  const draw = (seed: number): number[] => {
    const clock = new ManualClock(seed);
    return [clock.random(), clock.random()];
  };
  assert.deepEqual(draw(7), draw(7));
  assert.notDeepEqual(draw(7), draw(8));
});
