/** What the application's port promises to the core: on real sockets, and on the fake that the spine is tested with. */
import assert from 'node:assert/strict';
import { STATUS_CODES } from 'node:http';
import { test } from 'node:test';
import type { AppReply } from '../../src/core/delivery.ts';
import type { AppRequest, AppResult, Upstream } from '../../src/core/ports.ts';
import { createUpstream } from '../../src/upstream.ts';
import { FakeUpstream, reply, type Step } from '../support/fake-upstream.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startRawApplication } from '../support/raw-application.ts';

const TIMEOUT_MS = 5_000;

interface Rig extends AsyncDisposable {
  readonly upstream: Upstream;
  readonly clock: ManualClock;
  /** What to do with the next request. */
  next(step: Step): Promise<void>;
  /** Requests that reached the application. */
  count(): number;
  /** Resolves when the application has the n-th request. */
  arrived(n: number): Promise<unknown>;
}

const post: AppRequest = { method: 'POST', target: '/hook', headers: ['Host', 'a.example'], body: Buffer.from('{}') };

function unknown(result: AppResult): Extract<AppResult, { kind: 'unknown' }> {
  assert.equal(result.kind, 'unknown');
  return result;
}

function contract(name: string, start: () => Promise<Rig>): void {
  test(`${name}: an answer comes with status, headers, body and time`, async () => {
    await using rig = await start();
    await rig.next({ kind: 'answer', reply: reply(503, 'busy') });
    const result = await rig.upstream.send(post, () => true);
    assert.equal(result.kind, 'answered');
    if (result.kind !== 'answered') return;
    assert.deepEqual(result.reply, reply(503, 'busy'));
    assert.ok(result.upstreamMs >= 0);
  });

  test(`${name}: a connection that is refused: nothing was sent`, async () => {
    await using rig = await start();
    await rig.next({ kind: 'refuse' });
    const result = await rig.upstream.send(post, () => true);
    assert.equal(result.kind === 'never-sent' && result.why, 'unreachable');
  });

  test(`${name}: mayStart says no: nothing was sent, and the next request goes through`, async () => {
    await using rig = await start();
    const result = await rig.upstream.send(post, () => false);
    assert.equal(result.kind === 'never-sent' && result.why, 'expired');
    assert.equal(rig.count(), 0);
    assert.equal((await rig.upstream.send(post, () => true)).kind, 'answered');
    assert.equal(rig.count(), 1);
  });

  test(`${name}: a connection broken after the request: unknown, nothing comes later, nothing is sent again`, async () => {
    await using rig = await start();
    await rig.next({ kind: 'reset' });
    const result = unknown(await rig.upstream.send(post, () => true));
    assert.equal(result.how, 'reset');
    assert.equal(await result.late, undefined);
    assert.equal(rig.count(), 1);
  });

  test(`${name}: no answer in time: unknown, the exchange goes on and its answer comes late`, async () => {
    await using rig = await start();
    const done = Promise.withResolvers<void>();
    await rig.next({ kind: 'answer', reply: reply(200, 'at last'), when: done.promise });
    const sent = rig.upstream.send(post, () => true);
    await rig.arrived(1);
    await rig.clock.advance(TIMEOUT_MS);
    const result = unknown(await sent);
    assert.equal(result.how, 'timeout');
    await rig.clock.advance(10 * TIMEOUT_MS);
    done.resolve();
    assert.deepEqual(await result.late, reply(200, 'at last'));
    assert.equal(rig.count(), 1);
  });

  test(`${name}: no answer in time, then a broken connection: nothing comes`, async () => {
    await using rig = await start();
    const done = Promise.withResolvers<void>();
    await rig.next({ kind: 'reset', when: done.promise });
    const sent = rig.upstream.send(post, () => true);
    await rig.arrived(1);
    await rig.clock.advance(TIMEOUT_MS);
    const result = unknown(await sent);
    assert.equal(result.how, 'timeout');
    done.resolve();
    assert.equal(await result.late, undefined);
  });

  test(`${name}: an exchange that is cut ends without an answer`, async () => {
    await using rig = await start();
    const never = Promise.withResolvers<void>();
    await rig.next({ kind: 'answer', reply: reply(200), when: never.promise });
    const sent = rig.upstream.send(post, () => true);
    await rig.arrived(1);
    await rig.clock.advance(TIMEOUT_MS);
    const result = unknown(await sent);
    result.cut();
    assert.equal(await result.late, undefined);
    result.cut();
    never.resolve();
  });

  test(`${name}: an exchange that ended leaves no timer behind`, async () => {
    await using rig = await start();
    await rig.upstream.send(post, () => true);
    assert.equal(rig.clock.pending, 0);
  });
}

contract('fake', async () => {
  const clock = new ManualClock();
  const upstream = new FakeUpstream(clock, TIMEOUT_MS);
  return {
    upstream,
    clock,
    next: async (step) => upstream.next(step),
    count: () => upstream.requests.length,
    arrived: async () => await clock.settle(),
    [Symbol.asyncDispose]: async () => undefined,
  };
});

contract('undici', async () => {
  const clock = new ManualClock();
  const steps: Step[] = [];
  const application = await startRawApplication(({ socket }) => {
    const step = steps.shift() ?? { kind: 'answer', reply: reply(200) };
    void Promise.resolve('when' in step ? step.when : undefined).then(() => {
      if (step.kind === 'answer') socket.write(bytes(step.reply));
      else socket.resetAndDestroy();
    });
  });
  const upstream = createUpstream(
    {
      url: application.url,
      timeoutMs: TIMEOUT_MS,
      connectTimeoutMs: 1_000,
      maxInFlight: 2,
      maxWaiting: 1,
      maxWaitMs: 500,
      maxReply: 1024,
      host: 'preserve',
      keepAliveMs: 1_000,
    },
    clock,
  );
  return {
    upstream,
    clock,
    next: async (step) => {
      if (step.kind === 'refuse') await application.down();
      else steps.push(step);
    },
    count: () => application.requests.length,
    arrived: async (n) => await application.arrived(n - 1),
    async [Symbol.asyncDispose]() {
      await upstream[Symbol.asyncDispose]();
      await application.down();
    },
  };
});

function bytes({ status, headers, body }: AppReply): Buffer {
  const lines = headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}`] : []));
  return Buffer.concat([
    Buffer.from([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', ''].join('\r\n')),
    body!,
  ]);
}
