/** What may be written to the queue at the same time. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Turnstile } from '../../src/queue/turnstile.ts';
import { ManualClock } from '../support/manual-clock.ts';

test('as much as fits passes at once, the rest in turn; alone, anything passes', async () => {
  const clock = new ManualClock();
  const turnstile = new Turnstile(10, clock);
  const order: string[] = [];
  const come = async (name: string, bytes: number): Promise<void> => {
    if (await turnstile.enter(bytes, 1000)) order.push(name);
  };
  await come('a', 6);
  await come('b', 4);
  const waiting = [come('huge', 50), come('c', 1)];
  await clock.advance(10);
  assert.deepEqual(order, ['a', 'b']);
  turnstile.leave(6);
  await clock.advance(10);
  assert.deepEqual(order, ['a', 'b'], 'nobody passes the one who waits');
  turnstile.leave(4);
  await clock.advance(10);
  assert.deepEqual(order, ['a', 'b', 'huge']);
  turnstile.leave(50);
  await Promise.all(waiting);
  assert.deepEqual(order, ['a', 'b', 'huge', 'c']);
});

test('who is not admitted in time is turned away, and holds nobody up', async () => {
  const clock = new ManualClock();
  const turnstile = new Turnstile(10, clock);
  assert.ok(await turnstile.enter(10, 1000));
  const late = turnstile.enter(10, 1000);
  const later = turnstile.enter(2, 5000);
  await clock.advance(1000);
  assert.equal(await late, false);
  turnstile.leave(10);
  assert.equal(await later, true);
});
