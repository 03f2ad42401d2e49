/** Async mode on the spine: what is queued, what is claimed, and what the worker makes of it; all in memory. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { header, type Received } from '../../src/core/delivery.ts';
import { workKey } from '../../src/core/work-key.ts';
import { github } from '../../src/senders/github.ts';
import * as signers from '../../src/demo/signers.ts';
import { reply } from '../support/fake-upstream.ts';
import { routeOf, startGate } from '../support/gate.ts';

const route = routeOf(github, ['secret'], { async: { acceptedStatus: 202 } });
const routes = [route];

function delivery(id: string, body = '{"a":1}'): Received {
  const { headers, body: bytes } = signers.github('secret', id, Buffer.from(body));
  return { method: 'POST', target: '/hook', headers, body: bytes };
}

test('queued: accepted, done for its sender, and not yet forwarded', async () => {
  const gate = startGate();
  assert.deepEqual(await gate.handle(route, delivery('one')), { kind: 'accepted', attempt: 1 });
  assert.equal(gate.upstream.requests.length, 0);
  const copy = await gate.handle(route, delivery('one'));
  assert.ok(copy.kind === 'duplicate' && copy.done.status === 202);
  assert.deepEqual(gate.events.of('enqueued'), [['github', 'queued']]);
  gate.work(routes);
  await gate.clock.advance(0);
  assert.equal(gate.upstream.requests.length, 1);
});

test('not queued: released, and the attempt is taken back; perhaps queued: released, and it counts', async () => {
  const gate = startGate();
  gate.queue.answers.push('failed', 'unknown');
  assert.deepEqual(await gate.handle(route, delivery('one')), { kind: 'unavailable', why: 'queue' });
  assert.deepEqual(await gate.handle(route, delivery('one')), { kind: 'unavailable', why: 'queue' });
  assert.deepEqual(await gate.handle(route, delivery('one')), { kind: 'accepted', attempt: 2 });
  gate.work(routes);
  await gate.clock.advance(60_000);
  assert.equal(gate.upstream.requests.length, 1, 'the second job of the event is a duplicate');
  const ends = gate.events.of('jobEnded').map(([{ outcome, fate }]) => [outcome, fate.kind]);
  const done = ends.filter(([, fate]) => fate === 'done').map(([outcome]) => String(outcome));
  assert.deepEqual(done.sort(), ['delivered', 'duplicate']);
  assert.ok(ends.every(([, fate]) => fate !== 'dead'));
});

test('a copy that comes while the first is being queued waits for it', async () => {
  const gate = startGate();
  const waiting = { ...route, inFlight: { policy: 'wait', waitMs: 4000, maxWaiters: 32 } } as const;
  const queued = Promise.withResolvers<void>();
  const enqueue = gate.queue.enqueue.bind(gate.queue);
  gate.queue.enqueue = async (one) => {
    await queued.promise;
    return await enqueue(one);
  };
  const first = gate.handle(waiting, delivery('one'));
  const copy = gate.handle(waiting, delivery('one'));
  await gate.clock.advance(1000);
  queued.resolve();
  assert.equal((await first).kind, 'accepted');
  assert.equal((await copy).kind, 'duplicate');
});

test('the worker forwards under the work half, and names the event by its own key', async () => {
  const gate = startGate();
  const trail: { key?: string } = {};
  await gate.handle(route, delivery('one'), trail);
  gate.work(routes);
  await gate.clock.advance(0);
  const [request] = gate.upstream.requests;
  assert.equal(header(request!.headers, 'hookonce-key'), trail.key);
  assert.equal(header(request!.headers, 'hookonce-attempt'), '1');
  const standing = await gate.claims.peek(workKey({ id: trail.key } as Parameters<typeof workKey>[0]));
  assert.equal(standing.kind, 'done');
});

test('no answer: left to run out, and the next try waits for that without using an attempt', async () => {
  const gate = startGate();
  gate.upstream.next({ kind: 'answer', reply: reply(200), when: new Promise(() => undefined) });
  await gate.handle(route, delivery('one'));
  gate.work(routes);
  await gate.clock.advance(17_500);
  await gate.clock.advance(60_000);
  const fates = gate.events
    .of('jobEnded')
    .map(([{ outcome, fate, queueAttempt }]) => [outcome, fate.kind, queueAttempt]);
  assert.deepEqual(fates, [
    ['uncertain', 'retry', 1],
    ['in-progress', 'wait', 2],
    ['delivered', 'done', 2],
  ]);
  assert.deepEqual(
    gate.upstream.requests.map(({ headers }) => header(headers, 'hookonce-attempt')),
    ['1', '2'],
  );
});

test('a late answer settles the work: the next try finds it done', async () => {
  const gate = startGate();
  const answered = Promise.withResolvers<void>();
  gate.upstream.next({ kind: 'answer', reply: reply(200), when: answered.promise });
  await gate.handle(route, delivery('one'));
  gate.work(routes);
  await gate.clock.advance(15_500);
  answered.resolve();
  await gate.clock.advance(60_000);
  assert.equal(gate.upstream.requests.length, 1);
  assert.equal(gate.events.of('jobEnded').at(-1)![0].outcome, 'duplicate');
});

test('a route that is not configured any more: tried again, as another gateway may have it, then dead', async () => {
  const gate = startGate();
  await gate.handle(route, delivery('one'));
  gate.work([], { attempts: 2 });
  await gate.clock.advance(10_000);
  const [id] = await gate.queue.ids();
  assert.match((await gate.queue.get(id!))!.lastError, /there is no route github/);
});

test('without a name it is queued unclaimed, and forwarded as such', async () => {
  const gate = startGate();
  const unnamed = { ...route, identity: { ...route.identity, missing: 'forward' } } as const;
  const { headers, body } = signers.github('secret', 'x', Buffer.from('{}'));
  const at = headers.findIndex((name) => name.toLowerCase() === 'x-github-delivery');
  const without = headers.filter((_, i) => i !== at && i !== at + 1);
  const outcome = await gate.handle(unnamed, { method: 'POST', target: '/hook', headers: without, body });
  assert.deepEqual(outcome, { kind: 'accepted', attempt: 0 });
  gate.work([unnamed]);
  await gate.clock.advance(0);
  assert.equal(header(gate.upstream.requests[0]!.headers, 'hookonce-claim'), 'none');
});

test('an exception in the middle of a job is a failure like another, and told', async () => {
  const gate = startGate();
  gate.upstream.send = async () => {
    throw new TypeError('a bug');
  };
  await gate.handle(route, delivery('one'));
  gate.work(routes, { attempts: 1 });
  await gate.clock.advance(100_000);
  assert.equal((await gate.queue.ids()).length, 1);
  assert.ok(gate.events.of('warn').some(([message]) => message === 'a job failed unexpectedly'));
});

test('halves: the key of the work is another one, and names of repetitions keep apart', () => {
  const key = { id: 'AAAAAAAAAAAAAAAAAAAAAA' } as Parameters<typeof workKey>[0];
  const all = [key.id, workKey(key).id, workKey(key, 'a').id, workKey(key, 'b').id, workKey(workKey(key)).id];
  assert.equal(new Set(all).size, all.length);
  for (const id of all) assert.match(id, /^[\w-]{22}$/);
});

test('the same id with another body: refused, or queued as an event of its own, whose copies are its own', async () => {
  const gate = startGate();
  const refuses = { ...route, fingerprint: 'refuse' } as const;
  await gate.handle(refuses, delivery('one'));
  const other = await gate.handle(refuses, delivery('one', '{"a":2}'));
  assert.ok(other.kind === 'rejected' && other.reason === 'other_body');
  const forwards = { ...route, name: 'forwards', fingerprint: 'forward' } as const;
  const became: string[] = [];
  for (const body of ['{"a":1}', '{"a":2}', '{"a":1}', '{"a":2}'])
    became.push((await gate.handle(forwards, delivery('one', body))).kind);
  assert.deepEqual(became, ['accepted', 'accepted', 'duplicate', 'duplicate']);
  gate.work([forwards]);
  await gate.clock.advance(1_000);
  const bodies = gate.upstream.requests.map(({ body }) => body.toString());
  assert.deepEqual(bodies.sort(), ['{"a":1}', '{"a":2}']);
});

test('content that comes again under another id is queued once', async () => {
  const gate = startGate();
  const guarded = { ...route, replayGuard: { of: 'body', windowMs: 3_600_000 } } as const;
  const first = await gate.handle(guarded, delivery('one'));
  const second = await gate.handle(guarded, delivery('two'));
  assert.equal(first.kind, 'accepted');
  assert.ok(second.kind === 'duplicate' && second.replay === true);
  gate.work([guarded]);
  await gate.clock.advance(1_000);
  assert.equal(gate.upstream.requests.length, 1);
});
