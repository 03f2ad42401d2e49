/** Content that comes again under another id, and deliveries that nothing names: what the spine makes of them. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { suite, test } from 'node:test';
import type { Outcome, Received } from '../../src/core/delivery.ts';
import type { Route } from '../../src/core/route.ts';
import { senders } from '../../src/senders/index.ts';
import { answer } from '../../src/http/answer.ts';
import { header } from '../../src/core/delivery.ts';
import { reply } from '../support/fake-upstream.ts';
import { routeOf, startGate } from '../support/gate.ts';
import { received } from '../support/vectors.ts';

const windowMs = 3_600_000;
const github = senders.get('github')!;
const guarded = routeOf(github, ['secret'], { replayGuard: { of: 'body', windowMs } });
const open = routeOf(github, ['secret']);

const kinds = (outcomes: readonly Outcome[]) =>
  outcomes.map((outcome) => (outcome.kind === 'duplicate' && outcome.replay ? 'replay' : outcome.kind));

suite('the replay guard', () => {
  test('B13: without it a captured delivery is forwarded under every fresh id', async () => {
    const gate = startGate();
    for (const id of ['original', 'new-1', 'new-2', 'new-3', 'new-4', 'new-5'])
      assert.equal((await gate.handle(open, delivery(id))).kind, 'delivered');
    assert.equal(gate.upstream.requests.length, 6);
  });

  test('B13: with it only the first goes through, the others are marked and counted', async () => {
    const gate = startGate();
    const outcomes: Outcome[] = [];
    for (const id of ['original', 'new-1', 'new-2', 'new-3', 'new-4', 'new-5'])
      outcomes.push(await gate.handle(guarded, delivery(id)));
    assert.deepEqual(kinds(outcomes), ['delivered', 'replay', 'replay', 'replay', 'replay', 'replay']);
    assert.equal(gate.upstream.requests.length, 1);
    assert.deepEqual(
      gate.events.of('replayBlocked'),
      Array.from({ length: 5 }, () => ['github']),
    );
    const told = answer(outcomes[1]!, guarded);
    assert.deepEqual(
      [told.status, header(told.headers, 'hookonce-replay'), header(told.headers, 'hookonce-outcome')],
      [200, 'true', 'duplicate'],
    );
  });

  test('B13: a redelivery under the same id stays a plain duplicate', async () => {
    const gate = startGate();
    const outcomes = [await gate.handle(guarded, delivery('a')), await gate.handle(guarded, delivery('a'))];
    assert.deepEqual(kinds(outcomes), ['delivered', 'duplicate']);
    assert.equal(header(answer(outcomes[1]!, guarded).headers, 'hookonce-replay'), undefined);
    assert.deepEqual(gate.events.of('replayBlocked'), []);
  });

  test('other content, another route, or a window that is over: not a replay', async () => {
    const gate = startGate();
    const other: Route = { ...guarded, name: 'other' };
    assert.equal((await gate.handle(guarded, delivery('a'))).kind, 'delivered');
    assert.equal((await gate.handle(guarded, delivery('b', '{"a":2}'))).kind, 'delivered');
    assert.equal((await gate.handle(other, delivery('c'))).kind, 'delivered');
    await gate.clock.advance(windowMs + 1);
    assert.equal((await gate.handle(guarded, delivery('d'))).kind, 'delivered');
  });

  test('content whose first attempt failed is not done: the retry goes through, and then it is', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'answer', reply: reply(500) }, { kind: 'refuse' });
    const outcomes: Outcome[] = [];
    for (const id of ['a', 'a', 'a', 'b']) outcomes.push(await gate.handle(guarded, delivery(id)));
    assert.deepEqual(kinds(outcomes), ['refused', 'unreachable', 'delivered', 'replay']);
  });

  test('a known event that comes again is no replay, although its content was handled meanwhile', async () => {
    const gate = startGate();
    gate.upstream.next({ kind: 'answer', reply: reply(500) });
    const outcomes: Outcome[] = [];
    for (const id of ['a', 'b', 'a', 'a']) outcomes.push(await gate.handle(guarded, delivery(id)));
    assert.deepEqual(kinds(outcomes), ['refused', 'delivered', 'delivered', 'duplicate']);
  });

  test('while the first is in flight a replay is not answered with success, and leaves no claim behind', async () => {
    const gate = startGate();
    const ended = Promise.withResolvers<void>();
    gate.upstream.next({ kind: 'answer', reply: reply(200), when: ended.promise });
    const first = gate.handle(guarded, delivery('a'));
    const early = await gate.handle(guarded, delivery('b'));
    assert.equal(early.kind, 'in-progress');
    ended.resolve();
    assert.equal((await first).kind, 'delivered');
    assert.deepEqual(kinds([await gate.handle(guarded, delivery('b'))]), ['replay']);
    assert.equal(gate.upstream.requests.length, 1);
  });

  test('one that may wait asks for the content that is held, and claims once that is over', async () => {
    const gate = startGate();
    const patient: Route = { ...guarded, inFlight: { policy: 'wait', waitMs: 10_000, maxWaiters: 32 } };
    gate.upstream.next({ kind: 'answer', reply: reply(200), when: gate.clock.sleep(3_000) });
    const outcomes = ['a', 'b'].map(async (id) => await gate.handle(patient, delivery(id)));
    await gate.clock.advance(2_900);
    const claimed = () => gate.claims.calls.filter((call) => call === 'claim').length;
    assert.equal(claimed(), 4);
    await gate.clock.advance(500);
    assert.deepEqual(kinds(await Promise.all(outcomes)), ['delivered', 'replay']);
    assert.equal(claimed(), 6);
  });

  test('both claims are kept while the application works, and left alone when it does not answer', async () => {
    const gate = startGate();
    const ended = Promise.withResolvers<void>();
    gate.upstream.next({ kind: 'reset', when: ended.promise });
    const first = gate.handle(guarded, delivery('a'));
    // Past the life of a lock: only the watchdog keeps them.
    await gate.clock.advance(14_000);
    assert.equal((await gate.handle(guarded, delivery('b'))).kind, 'in-progress');
    await gate.clock.advance(10_000);
    ended.resolve();
    assert.equal((await first).kind, 'uncertain');
    assert.equal((await gate.handle(guarded, delivery('b'))).kind, 'in-progress');
    await gate.clock.advance(20_001);
    assert.equal((await gate.handle(guarded, delivery('b'))).kind, 'delivered');
  });

  test('without a quorum nothing is forwarded', async () => {
    const gate = startGate();
    gate.claims.reachable = false;
    assert.equal((await gate.handle(guarded, delivery('a'))).kind, 'unavailable');
  });

  test('where the signature covers no body it goes by the signed id: each Mailgun token goes through once', async () => {
    const gate = startGate();
    const mailgun = routeOf(senders.get('mailgun')!, ['secret'], { replayGuard: { of: 'signed-id', windowMs } });
    const send = async (token: string, id: string) => {
      const timestamp = String(Math.floor(gate.clock.wall() / 1000));
      const signature = createHmac('sha256', 'secret')
        .update(timestamp + token)
        .digest('hex');
      return await gate.handle(
        mailgun,
        received({}, JSON.stringify({ signature: { timestamp, token, signature }, 'event-data': { id } })),
      );
    };
    const outcomes = [await send('t1', 'a'), await send('t1', 'forged'), await send('t2', 'b'), await send('t1', 'a')];
    assert.deepEqual(kinds(outcomes), ['delivered', 'replay', 'delivered', 'duplicate']);
  });
});

suite('the same id with another body', () => {
  const bodies = ['{"a":1}', '{"a":2}', '{"a":1}', '{"a":2}'];
  const send = async (fingerprint: 'ignore' | 'refuse' | 'forward') => {
    const gate = startGate();
    const outcomes: Outcome[] = [];
    for (const body of bodies) outcomes.push(await gate.handle({ ...open, fingerprint }, delivery('a', body)));
    return { gate, outcomes };
  };

  test('is a duplicate all the same', async () => {
    const { gate, outcomes } = await send('ignore');
    assert.deepEqual(kinds(outcomes), ['delivered', 'duplicate', 'duplicate', 'duplicate']);
    assert.deepEqual(gate.events.of('otherBody'), []);
  });

  test('or is refused with 422, and counted', async () => {
    const { gate, outcomes } = await send('refuse');
    assert.deepEqual(kinds(outcomes), ['delivered', 'rejected', 'duplicate', 'rejected']);
    assert.equal(answer(outcomes[1]!, open).status, 422);
    assert.deepEqual(gate.events.of('otherBody'), [['github'], ['github']]);
    assert.equal(gate.upstream.requests.length, 1);
  });

  test('or is an event of its own, which goes through once', async () => {
    const { gate, outcomes } = await send('forward');
    assert.deepEqual(kinds(outcomes), ['delivered', 'delivered', 'duplicate', 'duplicate']);
    assert.deepEqual(
      gate.upstream.requests.map(({ body }) => body.toString()),
      ['{"a":1}', '{"a":2}'],
    );
  });

  test('a copy that waited is judged like one that came later', async () => {
    const gate = startGate();
    const waits: Route = { ...open, fingerprint: 'refuse', inFlight: { policy: 'wait', waitMs: 4_000, maxWaiters: 9 } };
    const ended = Promise.withResolvers<void>();
    gate.upstream.next({ kind: 'answer', reply: reply(200), when: ended.promise });
    const copies = ['{"a":1}', '{"a":1}', '{"a":2}'].map((body) => gate.handle(waits, delivery('a', body)));
    await gate.clock.advance(10);
    ended.resolve();
    assert.deepEqual(kinds(await Promise.all(copies)), ['delivered', 'duplicate', 'rejected']);
  });

  test('what a replay guard has stopped is not forwarded after all', async () => {
    const gate = startGate();
    const both: Route = { ...guarded, replayGuard: { of: 'signed-id', windowMs }, fingerprint: 'forward' };
    const mailgun = {
      ...both,
      signature: senders.get('mailgun')!.signature,
      identity: senders.get('mailgun')!.identity,
    };
    const send = async (id: string) => {
      const timestamp = String(Math.floor(gate.clock.wall() / 1000));
      const signature = createHmac('sha256', 'secret').update(`${timestamp}t1`).digest('hex');
      const body = { signature: { timestamp, token: 't1', signature }, 'event-data': { id } };
      return await gate.handle(mailgun, received({}, JSON.stringify(body)));
    };
    assert.deepEqual(kinds([await send('a'), await send('forged')]), ['delivered', 'replay']);
  });
});

suite('a delivery without an identity', () => {
  const missing = (policy: 'reject' | 'forward' | 'bodyHash'): Route => ({
    ...open,
    identity: { ...open.identity, missing: policy },
  });
  const send = async (policy: 'reject' | 'forward' | 'bodyHash', ...bodies: string[]) => {
    const gate = startGate();
    const outcomes: Outcome[] = [];
    for (const body of bodies) outcomes.push(await gate.handle(missing(policy), delivery(undefined, body)));
    assert.equal(gate.events.of('identityMissing').length, bodies.length);
    return { gate, outcomes };
  };

  test('B12: it is refused, and counted', async () => {
    const { gate, outcomes } = await send('reject', '{"a":1}', '{"a":2}');
    assert.deepEqual(kinds(outcomes), ['rejected', 'rejected']);
    assert.deepEqual(gate.claims.calls, []);
  });

  test('B12: or forwarded without a claim, equal bodies too', async () => {
    const { gate, outcomes } = await send('forward', '{"a":1}', '{"a":1}');
    assert.deepEqual(kinds(outcomes), ['delivered', 'delivered']);
    assert.deepEqual(gate.claims.calls, []);
    const [request] = gate.upstream.requests;
    assert.equal(header(request!.headers, 'hookonce-claim'), 'none');
    assert.equal(header(request!.headers, 'hookonce-key'), undefined);
  });

  test('B12: or named by its body', async () => {
    const { outcomes } = await send('bodyHash', '{"a":1}', '{"a":1}', '{"a":2}');
    assert.deepEqual(kinds(outcomes), ['delivered', 'duplicate', 'delivered']);
  });

  test('one with an identity is not counted', async () => {
    const gate = startGate();
    await gate.handle(missing('bodyHash'), delivery('a'));
    assert.deepEqual(gate.events.of('identityMissing'), []);
  });
});

function delivery(id: string | undefined, body = '{"a":1}'): Received {
  const signature = `sha256=${createHmac('sha256', 'secret').update(body).digest('hex')}`;
  return received({ ...(id !== undefined && { 'X-GitHub-Delivery': id }), 'X-Hub-Signature-256': signature }, body);
}
