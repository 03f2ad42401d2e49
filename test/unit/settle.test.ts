import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AppResult } from '../../src/core/ports.ts';
import { settle } from '../../src/core/settle.ts';

function answered(status: number): AppResult {
  return { kind: 'answered', reply: { status, headers: [], body: undefined }, upstreamMs: 1 };
}

function unknown(how: 'timeout' | 'reset'): AppResult {
  return { kind: 'unknown', how, late: new Promise(() => {}), cut: () => {} };
}

function settled(result: AppResult, completeOn: readonly number[] = []): string {
  const settlement = settle({ completeOn }, result);
  switch (settlement.claim) {
    case 'complete':
      return `complete ${settlement.reply.status}`;
    case 'release':
      return settlement.sent ? 'release' : 'release, take back';
    case 'leave':
      return 'leave';
  }
}

for (const status of [200, 201, 202, 204, 299]) {
  test(`${status} completes`, () => assert.equal(settled(answered(status)), `complete ${status}`));
}

for (const status of [199, 300, 301, 304, 400, 404, 409, 410, 429, 500, 503]) {
  test(`${status} releases: it was sent, so the attempt stays counted`, () =>
    assert.equal(settled(answered(status)), 'release'));
}

test('statuses of completeOn complete as well, and only those', () => {
  assert.equal(settled(answered(410), [410, 422]), 'complete 410');
  assert.equal(settled(answered(422), [410, 422]), 'complete 422');
  assert.equal(settled(answered(411), [410, 422]), 'release');
  assert.equal(settled(answered(200), [410]), 'complete 200');
});

for (const why of ['unreachable', 'expired', 'in_flight', 'waiting'] as const) {
  test(`${why}: no byte was sent, so the attempt is taken back`, () => {
    assert.equal(settled({ kind: 'never-sent', why, message: '' }), 'release, take back');
  });
}

for (const how of ['timeout', 'reset'] as const) {
  test(`${how} after bytes were sent: nobody knows, the lock is left to run out`, () => {
    assert.equal(settled(unknown(how)), 'leave');
    assert.equal(settled(unknown(how), [500]), 'leave');
  });
}
