import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSlots } from '../../src/core/slots.ts';
import { ManualClock } from '../support/manual-clock.ts';

const limits = { maxInFlight: 1, maxWaiting: 2, maxWaitMs: 500 };

test('how many wait is told whenever it changes', async () => {
  const clock = new ManualClock();
  const told: number[] = [];
  const slots = createSlots(limits, clock, (count) => told.push(count));
  assert.equal(slots.take(), 'taken');
  const [second, third] = [slots.take(), slots.take()];
  assert.equal(slots.take(), 'waiting');
  slots.give();
  assert.equal(await second, 'taken');
  await clock.advance(500);
  assert.equal(await third, 'in_flight');
  assert.deepEqual(told, [1, 2, 1, 0]);
});

test('another number of slots serves those who wait, or is reached as slots are given back', async () => {
  const slots = createSlots(limits, new ManualClock());
  assert.equal(slots.take(), 'taken');
  const second = slots.take();
  slots.resize({ ...limits, maxInFlight: 2 });
  assert.equal(await second, 'taken');
  slots.resize(limits);
  const third = slots.take();
  slots.give();
  slots.give();
  assert.equal(await third, 'taken');
});
