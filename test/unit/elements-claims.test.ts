/** Deliveries with several events through the spine: what is claimed, forwarded, told and left for the next. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Span } from '@opentelemetry/api';
import { header, type Outcome, type Received, type Trail, type Verified } from '../../src/core/delivery.ts';
import type { ElementRule } from '../../src/core/elements.ts';
import { claimsFor } from '../../src/core/elements-claims.ts';
import { identify } from '../../src/core/identify.ts';
import { createMemory } from '../../src/core/memory.ts';
import type { Route } from '../../src/core/route.ts';
import { SpannedClaims } from '../../src/tracing/spanned-claims.ts';
import { reply } from '../support/fake-upstream.ts';
import { startGate } from '../support/gate.ts';

const each: ElementRule = { list: [], each: [{ pointer: ['id'] }] };
const route: Route = {
  ...{ name: 'batch', path: '/batch', sender: 'acme', secrets: [], completeOn: [410], retentionMs: 86_400_000 },
  signature: { scheme: 'none' },
  identity: { parts: [{ from: 'json-list', ...each }], bodyHash: false, missing: 'reject', scope: 'route' },
  elements: each,
  inFlight: { policy: 'reject', waitMs: 0, maxWaiters: 0 },
  ...{ onUnavailable: 'reject', duplicateReply: 'empty', successStatus: 200 },
};
const waiting: Route = { ...route, inFlight: { policy: 'wait', waitMs: 4000, maxWaiters: 32 } };

const body = (ids: string): string =>
  `[ ${ids
    .split('')
    .map((id) => `{"id": "${id}"}`)
    .join(', ')} ]`;
const of = (ids: string, more: Partial<Received> = {}): Received => ({
  ...{ method: 'POST', target: '/batch', headers: ['Content-Type', 'application/json'] },
  body: Buffer.from(body(ids)),
  ...more,
});
const kindOf = ({ kind }: Outcome) => kind;

type Gate = ReturnType<typeof startGate>;
/** What the application was sent: the ids, and the mark. */
const sent = (gate: Gate) =>
  gate.upstream.requests.map(({ body: bytes, headers }) => [
    (JSON.parse(bytes.toString()) as { id: string }[]).map(({ id }) => id).join(''),
    header(headers, 'hookonce-elements'),
    header(headers, 'hookonce-attempt'),
  ]);
/** How each event stands, by a delivery of it alone that is not answered with success. */
async function standing(gate: Gate, ids: string): Promise<string> {
  const kinds: string[] = [];
  for (const id of ids) {
    gate.upstream.next({ kind: 'refuse' });
    const kind = kindOf(await gate.handle(route, of(id)));
    kinds.push({ duplicate: 'done', 'in-progress': 'held', unreachable: 'free' }[kind as string] ?? kind);
  }
  return kinds.join(' ');
}

suite('elements of a delivery', () => {
  test('all new: the body goes as it came, and each of them is done', async () => {
    const gate = startGate();
    const trail: Trail = {};
    assert.equal(kindOf(await gate.handle(route, of('abc'), trail)), 'delivered');
    assert.deepEqual(sent(gate), [['abc', '3/3', '1']]);
    assert.equal(gate.upstream.requests[0]!.body.toString(), body('abc'));
    assert.equal(trail.elements, '3/3');
    assert.equal(await standing(gate, 'abcd'), 'done done done free');
  });

  test('some done: they are left out, the others go in the bytes that they came in', async () => {
    const gate = startGate();
    await gate.handle(route, of('bd'));
    const trail: Trail = {};
    assert.equal(kindOf(await gate.handle(route, of('abcde'), trail)), 'delivered');
    assert.deepEqual(sent(gate), [
      ['bd', '2/2', '1'],
      ['ace', '3/5', '1'],
    ]);
    assert.equal(gate.upstream.requests[1]!.body.toString(), body('ace'));
    assert.equal(trail.elements, '3/5');
    assert.deepEqual(gate.events.of('elementsClaimed'), [
      ['batch', 2, 0],
      ['batch', 3, 2],
    ]);
  });

  test('all done, however they were put together: a duplicate', async () => {
    const gate = startGate();
    for (const ids of ['ab', 'cd']) await gate.handle(route, of(ids));
    const trail: Trail = {};
    assert.equal(kindOf(await gate.handle(route, of('dabc'), trail)), 'duplicate');
    assert.equal(trail.elements, '0/4');
    assert.equal(gate.upstream.requests.length, 2);
  });

  test('the same event twice in one delivery is forwarded once', async () => {
    const gate = startGate();
    await gate.handle(route, of('aba'));
    assert.deepEqual(sent(gate), [['ab', '2/3', '1']]);
  });

  test('a failure frees each of them; what is forwarded next carries the highest attempt', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'answer', reply: reply(500) });
    assert.equal(kindOf(await gate.handle(route, of('ab'))), 'refused');
    assert.equal(kindOf(await gate.handle(route, of('bc'))), 'delivered');
    assert.deepEqual(sent(gate).at(-1), ['bc', '2/2', '2']);
    assert.equal(await standing(gate, 'abc'), 'free done done');
  });

  test('never sent: the attempts are taken back', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'refuse' });
    await gate.handle(route, of('ab'));
    await gate.handle(route, of('ab'));
    assert.deepEqual(sent(gate), [['ab', '2/2', '1']]);
  });

  test('silence leaves each of them; a late success completes each', async () => {
    const gate = startGate();
    await gate.handle(route, of('a'));
    gate.upstream.next({ kind: 'answer', reply: reply(200), when: gate.clock.sleep(18_000) });
    const outcome = gate.handle(route, of('abc'));
    await gate.clock.advance(15_000);
    assert.equal(kindOf(await outcome), 'uncertain');
    assert.equal(await standing(gate, 'abc'), 'done held held');
    await gate.clock.advance(3_000);
    assert.equal(await standing(gate, 'abc'), 'done done done');
  });

  test('one that is held elsewhere: 503, and the others are as if they had never been claimed', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'answer', reply: reply(200), when: gate.clock.sleep(5_000) });
    const first = gate.handle(route, of('bc'));
    await gate.clock.settle();
    assert.equal(kindOf(await gate.handle(route, of('abd'))), 'in-progress');
    assert.equal(await standing(gate, 'ad'), 'free free');
    await gate.clock.advance(5_000);
    assert.equal(kindOf(await first), 'delivered');
    await gate.handle(route, of('abd'));
    assert.deepEqual(sent(gate).at(-1), ['ad', '2/3', '1']);
  });

  test('with wait: it goes on without what the other delivery completes meanwhile', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'answer', reply: reply(200), when: gate.clock.sleep(2_000) });
    const outcomes = ['bc', 'abd'].map(async (ids) => await gate.handle(waiting, of(ids)));
    await gate.clock.advance(1_000);
    assert.equal(gate.upstream.requests.length, 1);
    // It asks for the one that is held, and does not claim the others again and again.
    assert.equal(gate.claims.calls.filter((call) => call === 'claim').length, 5);
    await gate.clock.advance(2_000);
    assert.deepEqual((await Promise.all(outcomes)).map(kindOf), ['delivered', 'delivered']);
    assert.deepEqual(sent(gate), [
      ['bc', '2/2', '1'],
      ['ad', '2/3', '1'],
    ]);
  });

  test('with wait: it takes over what the other delivery fails with', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'answer', reply: reply(500), when: gate.clock.sleep(2_000) });
    const outcomes = ['bc', 'abd'].map(async (ids) => await gate.handle(waiting, of(ids)));
    await gate.clock.advance(3_000);
    assert.deepEqual((await Promise.all(outcomes)).map(kindOf), ['refused', 'delivered']);
    assert.deepEqual(sent(gate).at(-1), ['abd', '3/3', '2']);
  });

  test('with wait: one that was left without an answer is not waited for', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'reset' });
    await gate.handle(waiting, of('bc'));
    assert.equal(kindOf(await gate.handle(waiting, of('abd'))), 'in-progress');
  });

  test('no quorum: 503, or the delivery as it came, without a claim', async () => {
    const gate = startGate();
    await gate.handle(route, of('a'));
    gate.claims.reachable = false;
    assert.equal(kindOf(await gate.handle(route, of('ab'))), 'unavailable');
    assert.equal(kindOf(await gate.handle({ ...route, onUnavailable: 'forward' }, of('ab'))), 'delivered');
    assert.deepEqual(sent(gate).at(-1), ['ab', undefined, undefined]);
  });

  test('the watchdog renews each of them, and stops before they are settled', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'answer', reply: reply(200), when: gate.clock.sleep(14_000) });
    const outcome = gate.handle(route, of('abc'));
    await gate.clock.advance(14_000);
    assert.equal(kindOf(await outcome), 'delivered');
    const times = (call: string) => gate.claims.calls.filter((one) => one === call).length;
    assert.deepEqual([times('extend'), times('complete 200')], [6, 3]);
    assert.equal(gate.claims.calls.lastIndexOf('extend') < gate.claims.calls.indexOf('complete 200'), true);
    assert.deepEqual(gate.events.of('lockExtended'), [['ok'], ['ok']]);
  });

  test('a duplicate is told success where one of them was handled with success', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'answer', reply: reply(200) }, { kind: 'answer', reply: reply(410) });
    for (const ids of ['a', 'b']) await gate.handle(route, of(ids));
    const status = async (ids: string) => {
      const outcome = await gate.handle(route, of(ids));
      return outcome.kind === 'duplicate' ? outcome.done.status : outcome.kind;
    };
    assert.deepEqual([await status('ab'), await status('b')], [200, 410]);
  });

  test('more than one batch of a voter: the rest is not claimed where the first is held', async () => {
    const gate = startGate();
    const many = (from: number) =>
      Buffer.from(JSON.stringify(Array.from({ length: 300 }, (_, n) => ({ id: n + from }))));
    gate.upstream.next({ kind: 'answer', reply: reply(200), when: gate.clock.sleep(1_000) });
    const first = gate.handle(route, of('', { body: many(0) }));
    await gate.clock.settle();
    assert.equal(kindOf(await gate.handle(route, of('', { body: many(0), target: '/batch?again' }))), 'in-progress');
    await gate.clock.advance(1_000);
    assert.equal(kindOf(await first), 'delivered');
    assert.equal(kindOf(await gate.handle(route, of('', { body: many(150) }))), 'delivered');
    assert.equal(header(gate.upstream.requests[1]!.headers, 'hookonce-elements'), '150/300');
  });
});

suite('deliveries that go as a whole', () => {
  test('without names: what the route does with a delivery that has none', async () => {
    const gate = startGate();
    const unnamed = of('', { body: Buffer.from('[{"id":"a"},{}]') });
    assert.equal(kindOf(await gate.handle(route, unnamed)), 'rejected');
    const lenient: Route = { ...route, identity: { ...route.identity, missing: 'forward' } };
    for (let i = 0; i < 2; i += 1) assert.equal(kindOf(await gate.handle(lenient, unnamed)), 'delivered');
    const hashed: Route = { ...route, identity: { ...route.identity, missing: 'bodyHash' } };
    assert.deepEqual([await gate.handle(hashed, unnamed), await gate.handle(hashed, unnamed)].map(kindOf), [
      'delivered',
      'duplicate',
    ]);
    assert.equal(header(gate.upstream.requests[2]!.headers, 'hookonce-elements'), undefined);
    assert.deepEqual(gate.events.of('identityMissing').length, 5);
  });

  test('named by something else, where the route has that', async () => {
    const gate = startGate();
    const byBody: Route = { ...route, identity: { ...route.identity, parts: [{ from: 'body' }] } };
    const unnamed = of('', { body: Buffer.from('[{"id":"a"},{}]') });
    assert.deepEqual([await gate.handle(byBody, unnamed), await gate.handle(byBody, unnamed)].map(kindOf), [
      'delivered',
      'duplicate',
    ]);
    assert.deepEqual(gate.events.of('undivided'), [
      ['batch', 'unnamed'],
      ['batch', 'unnamed'],
    ]);
  });

  test('too many', async () => {
    const gate = startGate();
    const all = of('', { body: Buffer.from(JSON.stringify(Array.from({ length: 2001 }, (_, id) => ({ id })))) });
    assert.deepEqual([await gate.handle(route, all), await gate.handle(route, all)].map(kindOf), [
      'delivered',
      'duplicate',
    ]);
    assert.equal(gate.upstream.requests[0]!.body, all.body);
    assert.deepEqual(gate.events.of('undivided')[0], ['batch', 'too_many']);
  });
});

suite('around it', () => {
  test('under a content coding: the body goes as it came, or what is left of it without the coding', async () => {
    const gate = startGate();
    const coded = (ids: string): Received => ({
      ...of(ids, { body: gzipSync(body(ids)), headers: ['Content-Encoding', 'gzip', 'X-A', 'b'] }),
      decode: async () => Buffer.from(body(ids)),
    });
    await gate.handle(route, coded('ab'));
    const [first] = gate.upstream.requests;
    assert.deepEqual(first!.body, gzipSync(body('ab')));
    assert.equal(header(first!.headers, 'content-encoding'), 'gzip');
    await gate.handle(route, coded('abc'));
    const [, second] = gate.upstream.requests;
    assert.equal(second!.body.toString(), body('c'));
    assert.deepEqual([header(second!.headers, 'content-encoding'), header(second!.headers, 'x-a')], [undefined, 'b']);
  });

  test('without memory for what is left of a body: told to come again, and nothing is claimed', async () => {
    const gate = startGate();
    const size = of('abc').body.length;
    const share = createMemory(2 * size - 1, () => undefined).open();
    share.take(size);
    const outcome = await gate.handle(route, of('abc', { share }));
    assert.deepEqual(outcome, { kind: 'overloaded', limit: 'memory' });
    assert.deepEqual(gate.claims.calls, []);
  });

  test('a route that only observes leaves nothing out, and says what it would', async () => {
    const gate = startGate();
    const observing: Route = { ...route, observe: true };
    await gate.handle(observing, of('b'));
    await gate.handle(observing, of('abc'));
    assert.deepEqual(sent(gate).at(-1), ['abc', '2/3', '1']);
    await gate.handle(observing, of('cab'));
    assert.equal(header(gate.upstream.requests[2]!.headers, 'hookonce-observed'), 'duplicate');
  });

  test('with the replay guard: the content is claimed as well, and what is left goes', async () => {
    const gate = startGate();
    const guarded: Route = { ...route, replayGuard: { of: 'body', windowMs: 60_000 } };
    await gate.handle(guarded, of('b'));
    assert.equal(kindOf(await gate.handle(guarded, of('abc'))), 'delivered');
    assert.deepEqual(sent(gate).at(-1), ['ac', '2/3', '1']);
    assert.equal(kindOf(await gate.handle(guarded, of('abc'))), 'duplicate');
  });

  test('nobody else may say what was left out', async () => {
    const gate = startGate();
    await gate.handle(route, of('a', { headers: ['Hookonce-Elements', '9/9'] }));
    assert.deepEqual(
      gate.upstream.requests[0]!.headers.filter((_, i, all) => all[i - 1] === 'Hookonce-Elements'),
      ['1/1'],
    );
  });

  test('a trace has one span for the claim of all of them, and one for their completion', async () => {
    const gate = startGate();
    const steps: string[] = [];
    const span = { setAttribute: () => span, setStatus: () => span, end: () => undefined } as unknown as Span;
    const spanned = new SpannedClaims(gate.claims, (step) => {
      steps.push(step);
      return span;
    });
    const delivery = of('abc') as Verified;
    const whole = identify(route.identity, 'tests', route.name, delivery);
    assert.ok(!('kind' in whole));
    const claims = claimsFor({ service: 'tests', claims: spanned, events: gate.events }, route, delivery, whole, {})!;
    const claim = await claims.claim(whole, 1000);
    assert.ok(claim.kind === 'won');
    await claims.complete(claim.lease, { status: 200, traceId: '', reply: undefined });
    assert.deepEqual(steps, ['claim', 'complete']);
    assert.equal(await standing(gate, 'abc'), 'done done done');
  });
});
