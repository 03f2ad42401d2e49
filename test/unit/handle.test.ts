/** The spine, one delivery after another: every outcome, what it does to the claim, and what reaches the application. */
import assert from 'node:assert/strict';
import { beforeEach, suite, test } from 'node:test';
import { Background } from '../../src/core/background.ts';
import { header, type Outcome, type Received, type Trail } from '../../src/core/delivery.ts';
import { handle, type Gate } from '../../src/core/handle.ts';
import { InFlight } from '../../src/core/in-flight.ts';
import type { AppResult, Upstream } from '../../src/core/ports.ts';
import type { Route } from '../../src/core/route.ts';
import { github } from '../../src/senders/github.ts';
import { FakeClaims } from '../support/fake-claims.ts';
import { FakeUpstream, reply } from '../support/fake-upstream.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { recordedEvents, type RecordedEvents } from '../support/recorded-events.ts';

const times = { lockTtlMs: 20_000, unknownHoldMs: 20_000, maxHoldMs: 60_000 };

const hook: Route = {
  ...{ name: 'hook', path: '/hook', sender: 'acme', secrets: [], completeOn: [410], retentionMs: 86_400_000 },
  signature: { scheme: 'none' },
  identity: { parts: [{ from: 'header', names: ['X-Event'] }], bodyHash: false, missing: 'reject', scope: 'route' },
  inFlight: { policy: 'reject', waitMs: 0, maxWaiters: 0 },
  ...{ onUnavailable: 'reject', duplicateReply: 'empty', successStatus: 200 },
};
const received: Received = {
  method: 'POST',
  target: '/hook?a=%2F',
  headers: ['X-Event', 'e1', 'hookONCE-attempt', '7', 'X-Other', ' b '],
  body: Buffer.from('{}'),
};

let clock: ManualClock;
let events: RecordedEvents;
let claims: FakeClaims;
let upstream: FakeUpstream;
let background: Background;
beforeEach(() => {
  clock = new ManualClock();
  events = recordedEvents();
  claims = new FakeClaims(times, clock);
  upstream = new FakeUpstream(clock);
  background = new Background();
});

function gateTo(application: Upstream): Gate {
  const keys = { get: async () => undefined, visit: async () => false };
  const inFlight = new InFlight(claims, times, clock, events);
  return { service: 'test', claims, upstream: application, keys, clock, events, times, inFlight, background };
}

/** Delivers, and moves time on until it is answered. */
async function deliver(
  change: Partial<Route> = {},
  message = received,
  application: Upstream = upstream,
): Promise<{ outcome: Outcome; trail: Trail }> {
  const trail: Trail = {};
  const outcomes: Outcome[] = [];
  void handle(gateTo(application), { ...hook, ...change }, message, trail).then((one) => outcomes.push(one));
  await clock.settle();
  for (let ms = 0; outcomes.length === 0 && ms < 60_000; ms += 500) await clock.advance(500);
  assert.equal(outcomes.length, 1, 'answered');
  return { outcome: outcomes[0]!, trail };
}

async function kind(change?: Partial<Route>, message?: Received, application?: Upstream): Promise<string> {
  return (await deliver(change, message, application)).outcome.kind;
}

suite('the application answers', () => {
  test('success: delivered as attempt 1, the event is done, its copy a duplicate', async () => {
    const { outcome, trail } = await deliver();
    assert.deepEqual(outcome, { kind: 'delivered', reply: reply(200), attempt: 1 });
    assert.deepEqual(claims.calls, ['claim', 'complete 200']);
    assert.deepEqual([trail.attempt, trail.claimMs, trail.upstreamMs, trail.key?.length], [1, 0, 0, 22]);
    const copy = await deliver();
    assert.ok(copy.outcome.kind === 'duplicate');
    assert.deepEqual(copy.outcome.done, { status: 200, traceId: '', reply: undefined, wallMs: clock.wall() });
    assert.deepEqual([upstream.requests.length, copy.trail.attempt], [1, undefined]);
    assert.deepEqual(events.of('attemptRepeated'), []);
  });

  test('it gets the delivery as it came, and the gateway speaks for itself alone', async () => {
    const { trail } = await deliver();
    const { headers, ...rest } = upstream.requests[0]!;
    assert.deepEqual(rest, { method: 'POST', target: '/hook?a=%2F', body: received.body });
    assert.deepEqual(headers, [
      ...['X-Event', 'e1', 'X-Other', ' b '],
      ...['Hookonce-Key', trail.key, 'Hookonce-Sender', 'acme', 'Hookonce-Attempt', '1'],
    ]);
  });

  test('a status of completeOn: done, and the copy is told that status', async () => {
    upstream.next({ kind: 'answer', reply: reply(410) });
    assert.equal(await kind(), 'delivered');
    const copy = (await deliver()).outcome;
    assert.ok(copy.kind === 'duplicate' && copy.done.status === 410);
  });

  test('B03: anything else: refused, free at once, and the next delivery is attempt 2', async () => {
    upstream.next({ kind: 'answer', reply: reply(500, 'no') });
    assert.deepEqual((await deliver()).outcome, { kind: 'refused', reply: reply(500, 'no'), attempt: 1 });
    assert.deepEqual(claims.calls, ['claim', 'release sent']);
    const { outcome } = await deliver();
    assert.ok(outcome.kind === 'delivered' && outcome.attempt === 2);
    assert.equal(header(upstream.requests[1]!.headers, 'hookonce-attempt'), '2');
    assert.deepEqual(events.of('attemptRepeated'), [['hook']]);
    assert.equal(await kind(), 'duplicate');
  });

  test('after many lives of the lock: beaten all the time, and not once after it is settled', async () => {
    upstream = new FakeUpstream(clock, 600_000);
    upstream.next({ kind: 'answer', reply: reply(200), when: clock.sleep(50_000) });
    assert.equal(await kind(), 'delivered');
    await clock.advance(60_000);
    assert.deepEqual(claims.calls, ['claim', ...Array.from({ length: 7 }, () => 'extend'), 'complete 200']);
    assert.equal(clock.pending, 0);
  });

  test('a beat under way when the application answers ends before anything is settled', async () => {
    const beat = Promise.withResolvers<void>();
    const order: string[] = [];
    const { extend, complete } = claims;
    claims.extend = async (lease) => {
      await beat.promise;
      order.push('beaten');
      return await extend.call(claims, lease);
    };
    claims.complete = async (lease, completion) => {
      order.push('completed');
      await complete.call(claims, lease, completion);
    };
    upstream.next({ kind: 'answer', reply: reply(200), when: clock.sleep(7_000) });
    const answered = deliver();
    await clock.advance(10_000);
    assert.deepEqual(order, []);
    beat.resolve();
    await answered;
    assert.deepEqual(order, ['beaten', 'completed']);
  });

  test('success although the lock was lost meanwhile: written all the same', async () => {
    upstream = new FakeUpstream(clock, 600_000);
    upstream.next({ kind: 'answer', reply: reply(200), when: clock.sleep(30_000) });
    claims.reachable = true;
    const answered = deliver();
    await clock.settle();
    claims.reachable = false;
    await clock.advance(25_000);
    claims.reachable = true;
    await clock.advance(10_000);
    assert.equal((await answered).outcome.kind, 'delivered');
    assert.deepEqual(events.of('lockFailed'), [['lost']]);
    assert.equal(await kind(), 'duplicate');
  });
});

suite('nothing reaches the application', () => {
  test('no connection: unreachable, the attempt is taken back', async () => {
    upstream.next({ kind: 'refuse' });
    assert.deepEqual((await deliver()).outcome, { kind: 'unreachable', message: 'connection refused', attempt: 1 });
    assert.deepEqual(claims.calls, ['claim', 'release unsent']);
    const { outcome } = await deliver();
    assert.ok(outcome.kind === 'delivered' && outcome.attempt === 1);
  });

  for (const why of ['in_flight', 'waiting'] as const) {
    test(`no slot (${why}): overloaded, the attempt is taken back`, async () => {
      const full: Upstream = { send: async () => ({ kind: 'never-sent', why, message: '' }) };
      assert.deepEqual((await deliver({}, received, full)).outcome, { kind: 'overloaded', limit: why });
      assert.deepEqual(claims.calls, ['claim', 'release unsent']);
    });
  }

  test('a slot that comes when too little of the lock is left: not begun, counted, taken back', async () => {
    const late: Upstream = {
      send: async (_request, mayStart): Promise<AppResult> => {
        claims.reachable = false;
        await clock.sleep((2 / 3) * times.lockTtlMs + 1);
        assert.equal(mayStart(), false);
        claims.reachable = true;
        return { kind: 'never-sent', why: 'expired', message: '' };
      },
    };
    assert.equal(await kind({}, received, late), 'in-progress');
    assert.deepEqual(events.of('lockFailed'), [['expired']]);
    assert.equal(claims.calls.at(-1), 'release unsent');
    const { outcome } = await deliver();
    assert.ok(outcome.kind === 'delivered' && outcome.attempt === 1);
  });
});

suite('nobody knows what the application did', () => {
  const timeoutMs = 15_000;

  test('no answer in time: uncertain, left to run out; a late success is written', async () => {
    upstream.next({ kind: 'answer', reply: reply(201), when: clock.sleep(timeoutMs + 5_000) });
    assert.deepEqual((await deliver()).outcome, { kind: 'uncertain', how: 'timeout', attempt: 1 });
    assert.equal(claims.calls.at(-1), 'leave');
    assert.equal(await kind(), 'in-progress');
    await clock.advance(10_000);
    await background.idle();
    assert.deepEqual(events.of('lateAnswer'), [['hook', 201]]);
    const copy = (await deliver()).outcome;
    assert.ok(copy.kind === 'duplicate' && copy.done.status === 201);
    assert.equal(clock.pending, 0);
  });

  test('a late success is written even when the lock has run out and another attempt runs', async () => {
    upstream.next(
      { kind: 'answer', reply: reply(201), when: clock.sleep(50_000) },
      { kind: 'answer', reply: reply(500), when: clock.sleep(55_000) },
    );
    assert.equal(await kind(), 'uncertain');
    await clock.advance(times.unknownHoldMs + 1);
    assert.equal(await kind(), 'uncertain');
    assert.equal(header(upstream.requests[1]!.headers, 'hookonce-attempt'), '2');
    await clock.advance(20_000);
    await background.idle();
    assert.equal(await kind(), 'duplicate');
    assert.deepEqual(events.of('lateAnswer'), [
      ['hook', 201],
      ['hook', 500],
    ]);
  });

  test('a late failure frees the event at once', async () => {
    upstream.next({ kind: 'answer', reply: reply(500), when: clock.sleep(timeoutMs + 5_000) });
    assert.equal(await kind(), 'uncertain');
    await clock.advance(6_000);
    await background.idle();
    assert.equal(claims.calls.at(-1), 'release sent');
    const { outcome } = await deliver();
    assert.ok(outcome.kind === 'delivered' && outcome.attempt === 2);
  });

  test('no answer at all: the exchange is cut in the end, and nothing is written', async () => {
    upstream.next({ kind: 'answer', reply: reply(200), when: new Promise(() => {}) });
    assert.equal(await kind(), 'uncertain');
    await clock.advance(times.maxHoldMs + 1);
    await background.idle();
    assert.deepEqual(events.of('lateAnswer'), [['hook', undefined]]);
    assert.deepEqual(claims.calls.slice(-1), ['leave']);
    assert.equal(clock.pending, 0);
    const { outcome } = await deliver();
    assert.ok(outcome.kind === 'delivered' && outcome.attempt === 2);
  });

  test('reset after bytes were sent: uncertain, and held as long', async () => {
    upstream.next({ kind: 'reset' });
    assert.deepEqual((await deliver()).outcome, { kind: 'uncertain', how: 'reset', attempt: 1 });
    assert.equal(await kind(), 'in-progress');
    await clock.advance(times.unknownHoldMs);
    const { outcome } = await deliver();
    assert.ok(outcome.kind === 'delivered' && outcome.attempt === 2);
  });
});

suite('there is no claim to be had', () => {
  test('another process holds the event: in progress, with what is left of its lock', async () => {
    const elsewhere = gateTo(upstream);
    upstream.next({ kind: 'answer', reply: reply(200), when: clock.sleep(5_000) });
    const first = handle(elsewhere, hook, received, {});
    await clock.advance(2_000);
    const { outcome } = await deliver();
    assert.ok(outcome.kind === 'in-progress');
    assert.equal(outcome.retryAfterMs, times.lockTtlMs - 2_000);
    await clock.advance(5_000);
    assert.equal((await first).kind, 'delivered');
    assert.equal(upstream.requests.length, 1);
  });

  test('no quorum: unavailable, and nothing is forwarded', async () => {
    claims.reachable = false;
    assert.deepEqual((await deliver()).outcome, { kind: 'unavailable' });
    assert.deepEqual([claims.calls, upstream.requests.length], [['claim'], 0]);
  });

  test('no quorum, and the route would rather have a double: forwarded, and the application is told', async () => {
    claims.reachable = false;
    const { outcome } = await deliver({ onUnavailable: 'forward' });
    assert.deepEqual(outcome, { kind: 'delivered', reply: reply(200), attempt: 0 });
    const { headers } = upstream.requests[0]!;
    assert.deepEqual([header(headers, 'hookonce-claim'), header(headers, 'hookonce-attempt')], ['none', undefined]);
    assert.deepEqual(claims.calls, ['claim'], 'what was not claimed is not settled');
    assert.deepEqual(events.of('unclaimed'), [['hook', 'no_quorum']]);
  });

  test('B14: a wrong signature: rejected before anything is claimed', async () => {
    const { outcome } = await deliver({ signature: github.signature, secrets: [Buffer.from('a test secret')] });
    assert.ok(outcome.kind === 'rejected' && outcome.reason === 'missing_signature');
    assert.deepEqual([claims.calls, upstream.requests.length], [[], 0]);
  });

  test('no identity: rejected before anything is claimed', async () => {
    const { outcome } = await deliver({}, { ...received, headers: [] });
    assert.ok(outcome.kind === 'rejected' && outcome.reason === 'no_identity');
    assert.deepEqual([claims.calls, upstream.requests.length], [[], 0]);
  });
});

suite('what a duplicate may be told', () => {
  const large = Buffer.alloc(4097, 'x');
  const cases = [
    [
      'nothing, unless the route says so',
      'empty',
      { ...reply(200, 'hi'), headers: ['Content-Type', 'text/plain'] },
      undefined,
    ],
    [
      'type and body of the first reply',
      'stored',
      { ...reply(200, 'hi'), headers: ['content-type', 'text/plain', 'Set-Cookie', 'a=b'] },
      { contentType: 'text/plain', body: Buffer.from('hi') },
    ],
    [
      'a body without a type',
      'stored',
      { ...reply(200, ''), headers: [] },
      { contentType: undefined, body: Buffer.alloc(0) },
    ],
    [
      'up to 4 KiB',
      'stored',
      { status: 200, headers: [], body: large.subarray(1) },
      { contentType: undefined, body: large.subarray(1) },
    ],
    ['and no more', 'stored', { status: 200, headers: [], body: large }, 'omitted'],
    ['nor what the gateway itself did not keep', 'stored', { status: 200, headers: [], body: undefined }, 'omitted'],
  ] as const;
  for (const [name, duplicateReply, answered, expected] of cases) {
    test(name, async () => {
      upstream.next({ kind: 'answer', reply: answered });
      await deliver({ duplicateReply });
      const { outcome } = await deliver({ duplicateReply });
      assert.ok(outcome.kind === 'duplicate');
      assert.deepEqual(outcome.done.reply, expected);
    });
  }
});
