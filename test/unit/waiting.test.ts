/** The spine with copies: two processes of one service over claims, application and clock in memory. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Background } from '../../src/core/background.ts';
import type { Outcome, Received } from '../../src/core/delivery.ts';
import { handle, type Gate } from '../../src/core/handle.ts';
import { InFlight } from '../../src/core/in-flight.ts';
import type { Route } from '../../src/core/route.ts';
import { answer } from '../../src/http/answer.ts';
import { FakeClaims } from '../support/fake-claims.ts';
import { FakeUpstream, reply, type Step } from '../support/fake-upstream.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { recordedEvents } from '../support/recorded-events.ts';

const times = { lockTtlMs: 20_000, unknownHoldMs: 20_000, maxHoldMs: 60_000 };

const hook: Route = {
  ...{ name: 'hook', path: '/hook', sender: 'custom', secrets: [], completeOn: [], retentionMs: 86_400_000 },
  signature: { scheme: 'none' },
  identity: { parts: [], bodyHash: true, missing: 'reject', scope: 'route' },
  inFlight: { policy: 'wait', waitMs: 4_000, maxWaiters: 32 },
  ...{ onUnavailable: 'reject', duplicateReply: 'empty', successStatus: 200 },
};

interface Service {
  readonly clock: ManualClock;
  readonly claims: FakeClaims;
  readonly upstream: FakeUpstream;
  /** Delivers the event to process `n`; index `i` of the result is undefined until it is answered. */
  deliver(...to: readonly number[]): Promise<void>;
  readonly outcomes: (Outcome | undefined)[];
  kinds(): (string | undefined)[];
  /** `Hookonce-Attempt` of every request that reached the application. */
  attempts(): string[];
}

function startService(change: Partial<Route> = {}, ...steps: readonly Step[]): Service {
  const clock = new ManualClock();
  const claims = new FakeClaims(times, clock);
  const upstream = new FakeUpstream(clock);
  upstream.next(...steps);
  const route = { ...hook, ...change };
  const gates = [0, 1].map((): Gate => {
    const events = recordedEvents();
    const keys = { get: async () => undefined, visit: async () => false };
    const inFlight = new InFlight(claims, times, clock, events);
    return { service: 'test', claims, upstream, keys, clock, events, times, inFlight, background: new Background() };
  });
  const received: Received = { method: 'POST', target: '/hook', headers: [], body: Buffer.from('{"id":1}') };
  const outcomes: (Outcome | undefined)[] = [];
  return {
    ...{ clock, claims, upstream, outcomes },
    deliver: async (...to) => {
      for (const n of to) {
        const index = outcomes.push(undefined) - 1;
        void handle(gates[n]!, route, received, {}).then((outcome) => (outcomes[index] = outcome));
        await clock.settle();
      }
    },
    kinds: () => outcomes.map((outcome) => outcome?.kind),
    attempts: () => upstream.requests.map(({ headers }) => headers[headers.indexOf('Hookonce-Attempt') + 1]!),
  };
}

/** A step that works until the test lets it answer. */
function working(status: number, body = ''): { step: Step; finish(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { step: { kind: 'answer', reply: reply(status, body), when: promise }, finish: resolve };
}

suite('copies of one delivery over two processes', () => {
  test('success: forwarded once, and every copy is a duplicate', async () => {
    const work = working(201);
    const service = startService({}, work.step);
    await service.deliver(0, 0, 1, 1, 0);
    await service.clock.advance(1_000);
    assert.deepEqual(service.kinds(), [undefined, undefined, undefined, undefined, undefined]);
    work.finish();
    await service.clock.advance(300);
    assert.deepEqual(service.kinds(), ['delivered', 'duplicate', 'duplicate', 'duplicate', 'duplicate']);
    assert.deepEqual(service.attempts(), ['1']);
    assert.equal(service.claims.calls.filter((call) => call === 'claim').length, 2, 'one claim a process');
    for (const outcome of service.outcomes.slice(1)) {
      assert.ok(outcome?.kind === 'duplicate');
      assert.equal(outcome.done.status, 201);
    }
  });

  test('failures: the application sees one copy at a time, as attempts 1, 2, 3', async () => {
    const works = [working(500), working(500), working(200)] as const;
    const service = startService({}, ...works.map(({ step }) => step));
    await service.deliver(0, 1, 0, 1, 0, 1);
    for (const [n, work] of works.entries()) {
      await service.clock.advance(600);
      assert.equal(service.upstream.requests.length, n + 1);
      work.finish();
    }
    await service.clock.advance(600);
    assert.deepEqual(service.attempts(), ['1', '2', '3']);
    const count = (kind: string) => service.kinds().filter((one) => one === kind).length;
    assert.deepEqual([count('refused'), count('delivered'), count('duplicate')], [2, 1, 3]);
  });

  test('refused connections: each copy tries, one after the other, and no attempt is used up', async () => {
    const service = startService({}, { kind: 'refuse' }, { kind: 'refuse' });
    await service.deliver(0, 0, 0, 0);
    await service.clock.advance(100);
    assert.deepEqual(service.kinds(), ['unreachable', 'unreachable', 'delivered', 'duplicate']);
    assert.deepEqual(service.attempts(), ['1']);
  });

  test('broken off: every copy is told to come again once the lock left behind has run out', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const service = startService({}, { kind: 'reset', when: promise });
    await service.deliver(0, 0, 1);
    resolve();
    await service.clock.advance(300);
    assert.deepEqual(service.kinds(), ['uncertain', 'in-progress', 'in-progress']);
    for (const outcome of service.outcomes.slice(1)) {
      assert.ok(outcome?.kind === 'in-progress');
      assert.ok(outcome.retryAfterMs > 19_000 && outcome.retryAfterMs <= 20_000, `${outcome.retryAfterMs}`);
    }
    await service.clock.advance(20_000);
    await service.deliver(1);
    assert.deepEqual(service.attempts(), ['1', '2']);
  });

  test('a completing status other than 2xx is what its copies are told, too', async () => {
    const work = working(410);
    const service = startService({ completeOn: [410] }, work.step);
    await service.deliver(0, 0, 1);
    work.finish();
    await service.clock.advance(300);
    assert.deepEqual(
      service.outcomes.map((outcome) => answer(outcome!, hook).status),
      [410, 410, 410],
    );
  });

  test('stored replies: a copy that waited gets the first reply', async () => {
    const work = working(200, 'hello');
    const service = startService({ duplicateReply: 'stored' }, work.step);
    await service.deliver(0, 0, 1);
    work.finish();
    await service.clock.advance(300);
    for (const outcome of service.outcomes.slice(1)) {
      const { status, body } = answer(outcome!, { ...hook, duplicateReply: 'stored' });
      assert.deepEqual([status, body.toString()], [200, 'hello']);
    }
  });

  test('no quorum: each copy tries for itself, and is told so', async () => {
    const service = startService();
    service.claims.reachable = false;
    await service.deliver(0, 0, 0);
    assert.deepEqual(service.kinds(), ['unavailable', 'unavailable', 'unavailable']);
  });

  test('no quorum, and the route forwards all the same: the copies of one process still wait for one another', async () => {
    const work = working(200);
    const service = startService({ onUnavailable: 'forward' }, work.step);
    service.claims.reachable = false;
    await service.deliver(0, 0, 0);
    work.finish();
    await service.clock.advance(0);
    assert.deepEqual(service.kinds(), ['delivered', 'duplicate', 'duplicate']);
    assert.equal(service.upstream.requests.length, 1);
  });

  test('a slow first: the copies are told to come again at the end of their wait, and it goes on', async () => {
    const work = working(200);
    const service = startService({}, work.step);
    await service.deliver(0, 0, 1);
    await service.clock.advance(4_000);
    assert.deepEqual(service.kinds(), [undefined, 'in-progress', 'in-progress']);
    work.finish();
    await service.clock.settle();
    await service.deliver(1);
    assert.deepEqual(service.kinds(), ['delivered', 'in-progress', 'in-progress', 'duplicate']);
  });
});

test('policy accept takes a copy only while an attempt holds the event', () => {
  const accept: Route = { ...hook, inFlight: { ...hook.inFlight, policy: 'accept' } };
  assert.equal(answer({ kind: 'in-progress', retryAfterMs: 5_000 }, accept).status, 200);
  assert.equal(answer({ kind: 'in-progress', retryAfterMs: 0, split: true }, accept).status, 503);
});
