/** The order of one resource's events, in the spine: everything around it in memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { header, type Outcome, type Received } from '../../src/core/delivery.ts';
import { parsePointer } from '../../src/core/json-pointer.ts';
import type { Route } from '../../src/core/route.ts';
import { answer } from '../../src/http/answer.ts';
import { senders } from '../../src/senders/index.ts';
import { reply } from '../support/fake-upstream.ts';
import { routeOf, startGate } from '../support/gate.ts';

const at = (text: string) => ({ from: 'json', pointer: parsePointer(text)! }) as const;

function route(more: Partial<Route> = {}, onStale: 'drop' | 'mark' = 'drop'): Route {
  return {
    ...routeOf(senders.get('github')!, [], {}),
    ...{ signature: { scheme: 'none' }, secrets: [], inFlight: { policy: 'reject', waitMs: 4_000, maxWaiters: 32 } },
    identity: { parts: [at('/id')], bodyHash: false, missing: 'reject', scope: 'route' },
    ordering: { resource: [at('/order')], version: at('/version'), type: 'number', onStale },
    ...more,
  };
}

const event = (id: string, version: unknown, order: unknown = 'A'): Received => ({
  ...{ method: 'POST', target: '/hook', headers: ['Content-Type', 'application/json'] },
  body: Buffer.from(JSON.stringify({ id, order, version })),
});
const kinds = (...outcomes: readonly Outcome[]): string[] => outcomes.map(({ kind }) => kind);
const marks = (gate: ReturnType<typeof startGate>): (string | undefined)[] =>
  gate.upstream.requests.map(({ headers }) => header(headers, 'hookonce-stale'));

test('older than what was applied: answered with success, and not forwarded, now and later', async () => {
  const gate = startGate();
  const first = await gate.handle(route(), event('new', 7));
  const second = await gate.handle(route(), event('old', 6));
  const again = await gate.handle(route(), event('old', 6));
  assert.deepEqual(kinds(first, second, again), ['delivered', 'stale', 'duplicate']);
  assert.equal(gate.upstream.requests.length, 1);
  assert.deepEqual(gate.events.of('outOfOrder'), [['github', 'dropped']]);
});

test('older than what was applied, onStale: mark: forwarded, and what was applied stays', async () => {
  const gate = startGate();
  for (const [id, version] of [
    ['a', 7],
    ['b', 6],
    ['c', 6.5],
    ['d', 8],
  ] as const)
    await gate.handle(route({}, 'mark'), event(id, version));
  assert.deepEqual(marks(gate), [undefined, 'true', 'true', undefined]);
});

test('equal versions of different events pass, and so does everything of another resource', async () => {
  const gate = startGate();
  await gate.handle(route(), event('a', 7));
  await gate.handle(route(), event('b', '7.0'));
  await gate.handle(route(), event('c', 1, 'B'));
  assert.deepEqual(marks(gate), [undefined, undefined, undefined]);
});

test('a definite failure takes the version back: what is older is as good as before', async () => {
  const gate = startGate();
  await gate.handle(route(), event('a', 5));
  gate.upstream.next({ kind: 'answer', reply: reply(500) }, { kind: 'refuse' });
  await gate.handle(route(), event('b', 9));
  await gate.handle(route(), event('b', 9));
  const older = await gate.handle(route(), event('c', 7));
  assert.equal(older.kind, 'delivered');
  assert.deepEqual(marks(gate), [undefined, undefined, undefined]);
  assert.deepEqual(kinds(await gate.handle(route(), event('b', 9)), await gate.handle(route(), event('d', 8))), [
    'delivered',
    'stale',
  ]);
});

test('no answer: the resource is busy for as long as the lock is left, then what is older may be stale', async () => {
  const gate = startGate();
  gate.upstream.next({ kind: 'reset' });
  assert.equal((await gate.handle(route(), event('a', 9))).kind, 'uncertain');
  assert.equal((await gate.handle(route(), event('b', 7))).kind, 'in-progress');
  await gate.clock.advance(21_000);
  await gate.handle(route(), event('b', 7));
  await gate.handle(route(), event('c', 9));
  await gate.handle(route(), event('d', 8));
  assert.deepEqual(marks(gate), [undefined, 'maybe', undefined]);
  assert.deepEqual(gate.events.of('outOfOrder'), [
    ['github', 'maybe'],
    ['github', 'dropped'],
  ]);
});

test('a late success is applied, a late failure takes the version back', async () => {
  for (const [status, then] of [
    [200, 'stale'],
    [500, 'delivered'],
  ] as const) {
    const gate = startGate();
    const late = Promise.withResolvers<void>();
    gate.upstream.next({ kind: 'answer', reply: reply(status), when: late.promise });
    const first = gate.handle(route(), event('a', 9));
    await gate.clock.advance(15_001);
    assert.equal((await first).kind, 'uncertain');
    late.resolve();
    await gate.clock.settle();
    assert.equal((await gate.handle(route(), event('b', 7))).kind, then, `${status}`);
  }
});

test('a busy resource is waited for like a copy in flight; the event itself is not held up', async () => {
  const gate = startGate();
  const patient = route({ inFlight: { policy: 'wait', waitMs: 4_000, maxWaiters: 32 } });
  const work = Promise.withResolvers<void>();
  gate.upstream.next({ kind: 'answer', reply: reply(200), when: work.promise });
  const first = gate.handle(patient, event('a', 5));
  const second = gate.handle(patient, event('b', 6));
  const elsewhere = gate.handle(patient, event('c', 1, 'B'));
  await gate.clock.advance(1_000);
  assert.equal(gate.upstream.requests.length, 2, 'the other resource is free');
  work.resolve();
  await gate.clock.advance(1_000);
  assert.deepEqual(kinds(await first, await second, await elsewhere), ['delivered', 'delivered', 'delivered']);
});

test('a busy resource is no copy in flight: also with policy accept the sender is asked to come again', async () => {
  const gate = startGate();
  const hasty = route({ inFlight: { policy: 'accept', waitMs: 4_000, maxWaiters: 32 } });
  const work = Promise.withResolvers<void>();
  gate.upstream.next({ kind: 'answer', reply: reply(200), when: work.promise });
  const first = gate.handle(hasty, event('a', 5));
  await gate.clock.settle();
  const busy = await gate.handle(hasty, event('b', 6));
  assert.equal(answer(busy, hasty).status, 503);
  assert.equal(answer(await gate.handle(hasty, event('a', 5)), hasty).status, 200, 'of the event itself it is');
  work.resolve();
  assert.equal((await first).kind, 'delivered');
  assert.equal((await gate.handle(hasty, event('b', 6))).kind, 'delivered');
});

test('a busy resource, for longer than the wait: in progress, and nothing is held', async () => {
  const gate = startGate();
  const patient = route({ inFlight: { policy: 'wait', waitMs: 4_000, maxWaiters: 32 } });
  const work = Promise.withResolvers<void>();
  gate.upstream.next({ kind: 'answer', reply: reply(200), when: work.promise });
  const first = gate.handle(patient, event('a', 5));
  const second = gate.handle(patient, event('b', 6));
  await gate.clock.advance(5_000);
  assert.equal((await second).kind, 'in-progress');
  work.resolve();
  await gate.clock.settle();
  assert.equal((await first).kind, 'delivered');
  const retried = await gate.handle(patient, event('b', 6));
  assert.ok(retried.kind === 'delivered' && retried.attempt === 1, 'no byte was sent before');
});

test('a version or a resource that cannot be read: forwarded, marked, and nothing is made of it', async () => {
  const gate = startGate();
  await gate.handle(route(), event('a', 7));
  for (const odd of [event('b', null), event('c', 'later'), event('d', 9, null), event('e', 9, {})])
    assert.equal((await gate.handle(route(), odd)).kind, 'delivered');
  assert.deepEqual(marks(gate), [undefined, 'maybe', 'maybe', 'maybe', 'maybe']);
  assert.deepEqual(
    gate.events.of('outOfOrder'),
    Array.from({ length: 4 }, () => ['github', 'unread']),
  );
  assert.equal((await gate.handle(route(), event('f', 6))).kind, 'stale');
});

test('what was dropped is done for its sender: copies are duplicates, and its resource is free', async () => {
  const gate = startGate();
  await gate.handle(route({ successStatus: 204 }), event('a', 7));
  await gate.handle(route({ successStatus: 204 }), event('b', 1));
  const copy = await gate.handle(route({ successStatus: 204 }), event('b', 1));
  assert.ok(copy.kind === 'duplicate' && copy.done.status === 204);
  assert.equal((await gate.handle(route(), event('c', 8))).kind, 'delivered');
});

test('versions that reach no quorum: nothing is forwarded out of order', async () => {
  const gate = startGate();
  await gate.handle(route(), event('a', 7));
  gate.claims.ordered = false;
  assert.equal((await gate.handle(route(), event('b', 6))).kind, 'unavailable');
  gate.claims.ordered = true;
  assert.equal((await gate.handle(route(), event('b', 6))).kind, 'stale');
});

test('a success that no quorum has as applied yet: the resource is kept until it has', async () => {
  const gate = startGate();
  const work = Promise.withResolvers<void>();
  gate.upstream.next({ kind: 'answer', reply: reply(200), when: work.promise });
  const first = gate.handle(route(), event('a', 7));
  await gate.clock.settle();
  gate.claims.ordered = false;
  work.resolve();
  await gate.clock.settle();
  assert.equal((await first).kind, 'delivered', 'the sender is answered');
  await gate.clock.advance(60_000);
  gate.claims.ordered = true;
  assert.equal((await gate.handle(route(), event('b', 6))).kind, 'in-progress', 'far longer than a lock lives');
  await gate.clock.advance(6_000);
  assert.equal((await gate.handle(route(), event('b', 6))).kind, 'stale');
});

test('observing: a stale event is forwarded, and said to be one', async () => {
  const gate = startGate();
  await gate.handle(route({ observe: true }), event('a', 7));
  await gate.handle(route({ observe: true }), event('b', 6));
  const [, observed] = gate.upstream.requests;
  assert.equal(header(observed!.headers, 'hookonce-observed'), 'stale');
});

test('in async mode the work is done in order', async () => {
  const gate = startGate();
  const queued = route({ async: { acceptedStatus: 202 } });
  await gate.handle(queued, event('a', 7));
  await gate.handle(queued, event('b', 6));
  gate.work([queued]);
  await gate.clock.advance(60_000);
  assert.equal(gate.upstream.requests.length, 1);
});

/** The first event of A, in version 5, has become a dead letter; then version 6 was taken. */
async function deadThenOvertaken(gate: ReturnType<typeof startGate>, queued: Route): Promise<string> {
  gate.upstream.next({ kind: 'answer', reply: reply(500) });
  gate.work([queued], { attempts: 1, deadRetentionMs: 30 * 86_400_000 });
  await gate.handle(queued, event('a', 5));
  await gate.clock.advance(1_000);
  await gate.handle(queued, event('b', 6));
  await gate.clock.advance(1_000);
  const [id] = await gate.queue.ids();
  return id!;
}

test('a dead letter that has been overtaken is not forwarded when it is replayed, as late as it may be; forced, it is, and says so', async () => {
  const queued = route({ async: { acceptedStatus: 202 }, retentionMs: 86_400_000 });
  for (const again of ['', 'once more']) {
    const gate = startGate();
    const id = await deadThenOvertaken(gate, queued);
    await gate.clock.advance(9 * 86_400_000);
    assert.equal(await gate.queue.replay(id, again), 'replayed');
    await gate.clock.advance(1_000);
    assert.deepEqual(marks(gate), again === '' ? [undefined, undefined] : [undefined, undefined, 'true']);
    assert.deepEqual(await gate.queue.ids(), []);
  }
});

test('a job whose resource is busy looks again soon, and not only when the lock would have run out', async () => {
  const gate = startGate();
  const queued = route({ async: { acceptedStatus: 202 } });
  const ended = Promise.withResolvers<void>();
  gate.upstream.next({ kind: 'answer', reply: reply(200), when: ended.promise });
  gate.work([queued]);
  await gate.handle(queued, event('a', 5));
  await gate.handle(queued, event('b', 6));
  await gate.clock.advance(3_000);
  assert.equal(gate.upstream.requests.length, 1);
  ended.resolve();
  await gate.clock.advance(2_000);
  assert.deepEqual(marks(gate), [undefined, undefined]);
});
