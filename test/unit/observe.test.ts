/** Routes that only observe: what the application is sent, what is claimed, and what is counted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { header, type Received, type Trail } from '../../src/core/delivery.ts';
import type { Route } from '../../src/core/route.ts';
import { senders } from '../../src/senders/index.ts';
import { secrets } from '../support/config.ts';
import { github } from '../support/deliveries.ts';
import { reply } from '../support/fake-upstream.ts';
import { routeOf, startGate } from '../support/gate.ts';

const route = (change: Partial<Route> = {}): Route =>
  routeOf(senders.get('github')!, [secrets.github], { observe: true, ...change });

const delivery = (id: string, secret?: string): Received => ({
  ...{ method: 'POST', target: '/hook' },
  ...github(id, '{"a":1}', secret),
});

function start() {
  const gate = startGate();
  const marks = (): (string | undefined)[][] =>
    gate.upstream.requests.map(({ headers }) =>
      ['attempt', 'observed', 'claim'].map((name) => header(headers, `hookonce-${name}`)),
    );
  return { ...gate, marks };
}

test('a first delivery is claimed, marked and completed as on any other route', async () => {
  const { handle, claims, marks, events } = start();
  assert.equal((await handle(route(), delivery('1'))).kind, 'delivered');
  assert.deepEqual(claims.calls, ['claim', 'complete 200']);
  assert.deepEqual(marks(), [['1', undefined, undefined]]);
  assert.deepEqual(events.of('observed'), []);
});

test('a duplicate is counted and forwarded: the sender gets what the application answers to it', async () => {
  const { handle, claims, upstream, marks, events } = start();
  await handle(route(), delivery('1'));
  upstream.next({ kind: 'answer', reply: reply(409) });
  const trail: Trail = {};
  const outcome = await handle(route(), delivery('1'), trail);
  assert.equal(outcome.kind === 'refused' && outcome.reply.status, 409);
  assert.deepEqual(marks()[1], [undefined, 'duplicate', undefined]);
  assert.equal(
    header(upstream.requests[1]!.headers, 'hookonce-key'),
    header(upstream.requests[0]!.headers, 'hookonce-key'),
  );
  assert.deepEqual(events.of('observed'), [['github', 'duplicate']]);
  assert.equal(trail.observed, 'duplicate');
  assert.deepEqual(claims.calls, ['claim', 'complete 200', 'claim'], 'nothing is settled for it');
});

test('a copy of an event in flight does not wait, whatever the policy', async () => {
  for (const policy of ['wait', 'reject', 'accept'] as const) {
    const { handle, upstream, marks, clock } = start();
    const inFlight = { policy, waitMs: 4_000, maxWaiters: 32 };
    const begunMs = clock.now();
    const finished = Promise.withResolvers<void>();
    upstream.next({ kind: 'answer', reply: reply(200), when: finished.promise });
    const first = handle(route({ inFlight }), delivery('1'));
    const copy = await handle(route({ inFlight }), delivery('1'));
    assert.equal(copy.kind, 'delivered', policy);
    assert.deepEqual(marks(), [
      ['1', undefined, undefined],
      [undefined, 'in-progress', undefined],
    ]);
    assert.equal(clock.now(), begunMs);
    finished.resolve();
    assert.equal((await first).kind, 'delivered');
  }
});

test('a wrong signature and a missing name are forwarded as they came, and claim nothing', async () => {
  const { handle, claims, upstream, marks, events } = start();
  const trail: Trail = {};
  assert.equal((await handle(route(), delivery('1', 'another secret'), trail)).kind, 'delivered');
  assert.deepEqual([trail.observed, trail.reason], ['rejected', 'bad_signature']);
  const nameless = delivery('2');
  const kept = nameless.headers.filter((_, i, all) => all[i - (i % 2)] !== 'X-GitHub-Delivery');
  assert.equal((await handle(route(), { ...nameless, headers: kept })).kind, 'delivered');
  assert.deepEqual(claims.calls, []);
  assert.deepEqual(marks(), [
    [undefined, 'rejected', undefined],
    [undefined, 'rejected', undefined],
  ]);
  assert.deepEqual(upstream.requests[0]!.body, nameless.body);
  assert.deepEqual(events.of('observed').length, 2);
});

test('without a quorum a delivery is forwarded as unavailable; where the route forwards by itself, as ever', async () => {
  const { handle, claims, marks } = start();
  claims.reachable = false;
  await handle(route(), delivery('1'));
  await handle(route({ onUnavailable: 'forward' }), delivery('1'));
  assert.deepEqual(marks(), [
    [undefined, 'unavailable', undefined],
    [undefined, undefined, 'none'],
  ]);
});

test('an application that cannot be reached is asked once', async () => {
  const { handle, upstream, events } = start();
  upstream.next({ kind: 'refuse' });
  assert.equal((await handle(route(), delivery('1'))).kind, 'unreachable');
  assert.deepEqual(upstream.requests, []);
  assert.deepEqual(events.of('observed'), []);
});

test('the secret that made a signature is counted by its name, and a wrong signature counts for none', async () => {
  const { handle, events } = start();
  const two = routeOf(senders.get('github')!, [secrets.github, secrets.githubOld], { secretNames: ['new', 'old'] });
  await handle(two, delivery('1'));
  await handle(two, delivery('2', secrets.githubOld));
  await handle(two, delivery('3', 'another secret'));
  assert.deepEqual(events.of('secretUsed'), [
    ['github', 'new'],
    ['github', 'old'],
  ]);
});

test('of two references to the same secret the first one is named', async () => {
  const { handle, events } = start();
  await handle(
    routeOf(senders.get('github')!, [secrets.github, secrets.github], { secretNames: ['new', 'old'] }),
    delivery('1'),
  );
  assert.deepEqual(events.of('secretUsed'), [['github', 'new']]);
});
