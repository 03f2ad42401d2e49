import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RecentDeliveries } from '../../src/core/recent-deliveries.ts';

test('the last deliveries of an event, the oldest first, without their sender', () => {
  let wallMs = 0;
  const recent = new RecentDeliveries({ wall: () => (wallMs += 1) });
  const note = (key: string, status: number): void =>
    recent.note({ route: 'a', outcome: 'delivered', key, status, totalMs: 1, client: '203.0.113.7' });
  note('key', 500);
  for (let i = 0; i < 998; i++) note('another', 200);
  note('key', 200);
  assert.deepEqual(recent.of('key'), [
    { wallMs: 1, outcome: 'delivered', status: 500, totalMs: 1 },
    { wallMs: 1_000, outcome: 'delivered', status: 200, totalMs: 1 },
  ]);
  note('another', 200);
  assert.deepEqual(
    recent.of('key').map(({ status }) => status),
    [200],
  );
});
