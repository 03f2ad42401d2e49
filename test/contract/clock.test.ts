/** What every clock promises, on the real one and on the one that tests move. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import type { Clock } from '../../src/core/ports.ts';
import { ManualClock } from '../support/manual-clock.ts';

interface Rig {
  readonly clock: Clock;
  /** Lets at least this much time go by. */
  pass(ms: number): Promise<void>;
}

function contract(name: string, start: () => Rig): void {
  test(`${name}: a timer fires once, never early`, async () => {
    const { clock, pass } = start();
    const begun = clock.now();
    const fired: number[] = [];
    clock.timer(4.5, () => fired.push(clock.now() - begun));
    await pass(20);
    assert.equal(fired.length, 1);
    assert.ok(fired[0]! >= 4.5, `after ${fired[0]} ms`);
  });

  test(`${name}: timers fire in the order in which they are due`, async () => {
    const { clock, pass } = start();
    const fired: string[] = [];
    clock.timer(12, () => fired.push('second'));
    clock.timer(3, () => fired.push('first'));
    await pass(30);
    assert.deepEqual(fired, ['first', 'second']);
  });

  test(`${name}: a cancelled timer does not fire`, async () => {
    const { clock, pass } = start();
    let fired = false;
    const cancel = clock.timer(2, () => (fired = true));
    cancel();
    await pass(10);
    assert.equal(fired, false);
    cancel();
  });

  test(`${name}: sleep lasts as long as asked`, async () => {
    const { clock, pass } = start();
    const begun = clock.now();
    const slept = clock.sleep(5).then(() => clock.now() - begun);
    await pass(20);
    assert.ok((await slept) >= 5);
  });

  test(`${name}: sleep ends at once when its signal aborts, and does not reject`, async () => {
    const { clock, pass } = start();
    const stop = new AbortController();
    const begun = clock.now();
    const slept = clock.sleep(60_000, stop.signal);
    await pass(1);
    stop.abort();
    await slept;
    await clock.sleep(60_000, stop.signal);
    assert.ok(clock.now() - begun < 10_000);
  });

  test(`${name}: soon runs after the promises that are ready, before time moves`, async () => {
    const { clock, pass } = start();
    const order: string[] = [];
    clock.timer(15, () => order.push('timer'));
    clock.soon(() => order.push('soon'));
    void Promise.resolve().then(() => order.push('promise'));
    await pass(30);
    assert.deepEqual(order, ['promise', 'soon', 'timer']);
  });

  test(`${name}: wall time goes on with monotonic time`, async () => {
    const { clock, pass } = start();
    const [wall, now] = [clock.wall(), clock.now()];
    await pass(20);
    const difference = clock.wall() - wall - (clock.now() - now);
    assert.ok(Math.abs(difference) < 10, `${difference} ms apart`);
  });

  test(`${name}: random numbers are in [0, 1) and differ`, () => {
    const { clock } = start();
    const drawn = Array.from({ length: 100 }, () => clock.random());
    assert.ok(drawn.every((n) => n >= 0 && n < 1));
    assert.ok(new Set(drawn).size > 90);
  });
}

contract('system clock', () => ({
  clock: systemClock,
  pass: async (ms) => await systemClock.sleep(ms),
}));

contract('manual clock', () => {
  const clock = new ManualClock();
  return { clock, pass: async (ms) => await clock.advance(ms) };
});
