import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import type { DeliveryKey } from '../../src/core/delivery.ts';
import { Watchdog } from '../../src/core/lease.ts';
import type { Claims, Lease } from '../../src/core/ports.ts';
import { FakeClaims } from '../support/fake-claims.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { recordedEvents, type RecordedEvents } from '../support/recorded-events.ts';

const times = { lockTtlMs: 3_000, unknownHoldMs: 3_000, maxHoldMs: 60_000 };
const key = { id: 'an-event' } as DeliveryKey;

let clock: ManualClock;
let events: RecordedEvents;
let claims: FakeClaims;
let lease: Lease;
beforeEach(async () => {
  clock = new ManualClock();
  events = recordedEvents();
  claims = new FakeClaims(times, clock);
  const result = await claims.claim(key, 60_000);
  assert.ok(result.kind === 'won');
  lease = result.lease;
});

function watch(over: Pick<Claims, 'extend'> = claims, hold = times): Watchdog {
  return new Watchdog(over as Claims, lease, hold, clock, events);
}

/** Every beat, with the time since the test began. */
function beats(): { at: number[]; claims: Pick<Claims, 'extend'> } {
  const at: number[] = [];
  const begun = clock.now();
  return {
    at,
    claims: {
      extend: async (one) => {
        at.push(clock.now() - begun);
        return await claims.extend(one);
      },
    },
  };
}

function results(): string[] {
  return events.of('lockExtended').map(([result]) => result);
}

test('beats after every third of the lock, and keeps the lease valid all the time', async () => {
  const { at, claims: counted } = beats();
  const watchdog = watch(counted);
  for (let ms = 0; ms < 10_000; ms += 100) {
    await clock.advance(100);
    assert.ok(lease.validForMs() >= (2 / 3) * times.lockTtlMs - 1, `${lease.validForMs()} ms left at ${ms}`);
  }
  await watchdog.stop();
  assert.deepEqual(at, [1_000, 2_000, 3_000, 4_000, 5_000, 6_000, 7_000, 8_000, 9_000, 10_000]);
  assert.deepEqual(new Set(results()), new Set(['ok']));
  assert.equal(clock.pending, 0);
});

test('stopped before its first beat, it never beats', async () => {
  const watchdog = watch();
  await clock.advance(999);
  await watchdog.stop();
  await clock.advance(60_000);
  assert.deepEqual(claims.calls, ['claim']);
  assert.equal(clock.pending, 0);
});

test('stop waits for a beat under way, and no other follows', async () => {
  const under = Promise.withResolvers<boolean>();
  const asked: number[] = [];
  const watchdog = watch({
    extend: async () => {
      asked.push(clock.now());
      return await under.promise;
    },
  });
  await clock.advance(1_000);
  let stopped = false;
  const stopping = watchdog.stop().then(() => void (stopped = true));
  await clock.advance(5_000);
  assert.equal(stopped, false);
  under.resolve(true);
  await stopping;
  await clock.advance(60_000);
  assert.equal(asked.length, 1);
  assert.deepEqual(results(), ['ok']);
});

test('a beat that failed is repeated after every tenth of the lock; one success, and it beats as before', async () => {
  const { at, claims: counted } = beats();
  const watchdog = watch(counted);
  claims.reachable = false;
  await clock.advance(1_700);
  claims.reachable = true;
  await clock.advance(1_300);
  await watchdog.stop();
  assert.deepEqual(at, [1_000, 1_300, 1_600, 1_900, 2_900]);
  assert.deepEqual(results(), ['failed', 'failed', 'failed', 'ok', 'ok']);
  assert.deepEqual(events.of('lockFailed'), []);
});

test('no beat succeeds until validity has ended: lost, told once; it goes on trying', async () => {
  const { at, claims: counted } = beats();
  const watchdog = watch(counted);
  claims.reachable = false;
  await clock.advance(5_000);
  await watchdog.stop();
  assert.deepEqual(at.slice(0, 3), [1_000, 1_300, 1_600]);
  assert.ok(at.at(-1)! > 4_500);
  assert.equal(results().indexOf('lost'), 7, 'at 3100 ms, the first after the end at 3000');
  assert.equal(results().filter((result) => result === 'lost').length, 1);
  assert.deepEqual(events.of('lockFailed'), [['lost']]);
});

test('held again after it was lost, it is kept; lost again, it is not told again', async () => {
  let answer = false;
  const watchdog = watch({ extend: async () => answer });
  await clock.advance(4_000);
  answer = true;
  await clock.advance(2_000);
  answer = false;
  await clock.advance(5_000);
  await watchdog.stop();
  assert.deepEqual(events.of('lockFailed'), [['lost']]);
  assert.ok(results().includes('ok'));
});

test('a lock that another has taken is lost when its validity ends', async () => {
  const watchdog = watch();
  await claims.leave(lease);
  await clock.advance(0);
  await claims.release(lease, true);
  assert.equal((await claims.claim(key, 60_000)).kind, 'won');
  await clock.advance(3_500);
  await watchdog.stop();
  assert.deepEqual(events.of('lockFailed'), [['lost']]);
  assert.equal((await claims.peek(key)).kind, 'free', 'and the other was not kept alive by us');
});

test('ends by itself when maxHold is over, and lets the lock run out', async () => {
  const watchdog = watch(claims, { ...times, maxHoldMs: 10_000 });
  await clock.advance(60_000);
  assert.equal(claims.calls.filter((call) => call === 'extend').length, 9);
  assert.equal((await claims.peek(key)).kind, 'free');
  assert.equal(clock.pending, 0);
  await watchdog.stop();
});

test('stopping twice is harmless', async () => {
  const watchdog = watch();
  await clock.advance(1_500);
  await Promise.all([watchdog.stop(), watchdog.stop()]);
  await watchdog.stop();
  assert.equal(results().length, 1);
});
