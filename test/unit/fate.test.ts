/** What becomes of a job. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { pauseAfter } from '../../src/core/backoff.ts';
import type { Outcome } from '../../src/core/delivery.ts';
import { fateOf, type RetryRules } from '../../src/core/fate.ts';
import { httpDate } from '../../src/core/http-date.ts';
import type { Fate, Job } from '../../src/core/queue.ts';
import { sample } from '../queue/queue-suite.ts';

const wallMs = 784_111_777_000;
const rules: RetryRules = { attempts: 3, backoff: { firstMs: 1000, maxMs: 60_000 }, nonRetryable: [410, 422] };
const job = (attempt = 1, replay?: Job['replay']): Job => ({ id: 'one', delivery: sample(), attempt, replay });
const fate = (outcome: Outcome, of = job(), random = 0.5): Fate =>
  fateOf(outcome, of, rules, { wallMs, tookMs: 7, random });
const refused = (status: number, ...headers: string[]): Outcome => ({
  kind: 'refused',
  reply: { status, headers, body: undefined },
  attempt: 1,
});
const duplicate = (doneMs: number): Outcome => ({
  kind: 'duplicate',
  done: { status: 200, wallMs: doneMs, traceId: '', reply: undefined },
});
const ms = (found: Fate): number => ('ms' in found ? found.ms : assert.fail(found.kind));

test('done: delivered, or a duplicate', () => {
  assert.deepEqual(fate({ kind: 'delivered', reply: { status: 200, headers: [], body: undefined }, attempt: 1 }), {
    kind: 'done',
  });
  assert.deepEqual(fate(duplicate(wallMs - 1000)), { kind: 'done' });
});

test('a replay is never swallowed as a duplicate: done before it, it is dead again and says so', () => {
  const replay = { wallMs: wallMs - 500, again: '' };
  const found = fate(duplicate(wallMs - 1000), job(1, replay));
  assert.ok(found.kind === 'dead');
  assert.match(found.attempt.message, /done before the replay.*force/);
  assert.deepEqual(fate(duplicate(wallMs - 100), job(1, replay)), { kind: 'done' }, 'by the replay itself');
  const forced = { wallMs: wallMs - 500, again: 'one/1' };
  assert.deepEqual(fate(duplicate(wallMs - 1000), job(1, forced)), { kind: 'done' }, 'a second worker of a forced one');
});

test('held: comes again when the lock has run out, and uses no attempt', () => {
  for (const attempt of [1, 3, 100]) {
    const found = fate({ kind: 'in-progress', retryAfterMs: 12_000 }, job(attempt));
    assert.ok(found.kind === 'wait' && found.ms >= 12_000 && found.ms <= 12_700, JSON.stringify(found));
  }
});

test('no quorum, no place, too late: soon again, and no attempt is used', () => {
  const outcomes: Outcome[] = [
    { kind: 'unavailable' },
    { kind: 'overloaded', limit: 'in_flight' },
    { kind: 'in-progress', retryAfterMs: 0, split: true },
  ];
  for (const outcome of outcomes) {
    const found = fate(outcome, job(3));
    assert.ok(found.kind === 'wait' && found.ms >= 100 && found.ms <= 1000, JSON.stringify(found));
  }
});

test('failed: again after a growing pause, dead after the last attempt', () => {
  const failures: Outcome[] = [
    refused(500),
    refused(302),
    { kind: 'unreachable', message: 'connection refused', attempt: 1 },
    { kind: 'uncertain', how: 'timeout', attempt: 1 },
  ];
  for (const outcome of failures) {
    assert.deepEqual(
      [1, 2].map((attempt) => ms(fate(outcome, job(attempt)))),
      [1000, 2000],
    );
    const last = fate(outcome, job(3));
    assert.ok(last.kind === 'dead' && last.attempt.attempt === 3 && last.attempt.outcome === outcome.kind);
  }
});

test('a status that is not to be tried again makes a dead letter at once', () => {
  const found = fate(refused(410));
  assert.ok(found.kind === 'dead');
  assert.deepEqual(found.attempt, {
    ...{ wallMs, attempt: 1, outcome: 'refused', message: 'answered 410', tookMs: 7, status: 410 },
  });
});

test('Retry-After is honoured, in seconds and as a date, where it is longer than the pause', () => {
  const after = (text: string): number => ms(fate(refused(503, 'Retry-After', text)));
  assert.equal(after('30'), 30_000);
  assert.equal(after('0'), 1000);
  assert.equal(after('Sun, 06 Nov 1994 08:50:37 GMT'), 60_000);
  assert.equal(after('Sunday, 06-Nov-94 08:50:07 GMT'), 30_000);
  assert.equal(after('Sun Nov  6 08:49:57 1994'), 20_000);
  assert.equal(after('Sat, 05 Nov 1994 08:49:37 GMT'), 1000, 'a date in the past');
  assert.equal(after('999999999'), 86_400_000, 'no longer than a day');
  for (const nonsense of ['', 'soon', '-5', '1.5', '1e3', 'Sun, 06 Foo 1994 08:49:37 GMT'])
    assert.equal(after(nonsense), 1000, nonsense);
});

test('a date of HTTP is the instant that it names', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4_102_444_800 }), (seconds) => {
      assert.equal(httpDate(new Date(seconds * 1000).toUTCString()), seconds * 1000);
    }),
  );
});

test('pauses grow, keep to their limit, and are whole milliseconds', () => {
  const backoff = { firstMs: 333, maxMs: 3_600_000 };
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (attempt, random) => {
        const pause = pauseAfter(attempt, backoff, random);
        assert.ok(Number.isInteger(pause) && pause > 0 && pause <= 1.2 * backoff.maxMs);
        if (attempt < 13)
          assert.ok(pauseAfter(attempt + 1, backoff, 0) > pauseAfter(attempt, backoff, 0.999), `${attempt}`);
      },
    ),
  );
});
