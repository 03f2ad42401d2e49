import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import type { Reply } from '../../src/demo/exchange.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held, reset } from '../support/application.ts';
import { post, startCluster, type Cluster } from '../support/cluster.ts';
import { shortLock } from '../support/config.ts';
import { github, outcome, retryAfter, stripe } from '../support/deliveries.ts';
import { eventKeys } from '../support/keys.ts';

const upstream = { timeout: '500ms' };

let cluster: Cluster;
before(async () => {
  // An uncertain outcome is held longer here than any step of a test takes.
  cluster = await startCluster({ settings: { upstream, claims: { unknownHold: '30s' } } });
});
after(async () => await cluster[Symbol.asyncDispose]());

const deliver = (id: string, n = 0) => cluster.post(n, '/github', github(id));
const attempts = (id: string) => cluster.application.of(id).map(({ attempt }) => attempt);

function assertHeld(reply: Reply): void {
  assert.deepEqual([reply.status, outcome(reply)], [503, 'in-progress']);
  assert.ok(retryAfter(reply) >= 1 && retryAfter(reply) <= 30, `Retry-After: ${retryAfter(reply)}`);
}

function assertDuplicate(reply: Reply): void {
  assert.deepEqual([reply.status, outcome(reply)], [200, 'duplicate']);
}

/** Delivers until something other than "in progress" comes back. */
const untilFree = (send: () => Promise<Reply>): Promise<Reply> =>
  until(systemClock, 'an event that is free again', async () => {
    const reply = await send();
    return outcome(reply) === 'in-progress' ? undefined : reply;
  });

test('500 first, then 200: both are relayed, the third delivery is a duplicate', async () => {
  cluster.application.script('fails-once', answer(500), answer(200));
  const first = await deliver('fails-once');
  assert.deepEqual([first.status, first.body.toString(), outcome(first)], [500, 'answered 500\n', undefined]);
  const second = await deliver('fails-once', 1);
  assert.deepEqual([second.status, second.body.toString()], [200, 'answered 200\n']);
  assertDuplicate(await deliver('fails-once'));
  assert.deepEqual(attempts('fails-once'), [1, 2]);
});

test('connection refused: 502, and free at once', async () => {
  await cluster.application.down();
  const refused = await deliver('refused');
  assert.deepEqual([refused.status, outcome(refused)], [502, 'unreachable']);
  await cluster.application.up();
  assert.equal((await deliver('refused', 1)).status, 200);
  assert.deepEqual(attempts('refused'), [1], 'no byte was sent: the attempt was taken back');
});

test('timeout: 504 and held; a late success settles the event', async () => {
  const work = held();
  cluster.application.script('late-success', work.step);
  const first = await deliver('late-success');
  assert.deepEqual([first.status, outcome(first)], [504, 'uncertain']);
  assertHeld(await deliver('late-success'));
  assertHeld(await deliver('late-success', 1));
  work.finish();
  assertDuplicate(await untilFree(() => deliver('late-success', 1)));
  assert.deepEqual(attempts('late-success'), [1]);
});

test('timeout: a late failure frees the event', async () => {
  const work = held();
  cluster.application.script('late-failure', work.step, answer(200));
  assert.equal((await deliver('late-failure')).status, 504);
  assertHeld(await deliver('late-failure', 1));
  work.finish({ status: 500 });
  assert.equal((await untilFree(() => deliver('late-failure', 1))).status, 200);
  assert.deepEqual(attempts('late-failure'), [1, 2]);
});

test('timeout and silence: attempt 2 is forwarded once the hold has run out', async () => {
  const gateway = await cluster.gateway({ upstream, claims: { ...shortLock, unknownHold: '1500ms' } });
  const work = held();
  cluster.application.script('silence', work.step, answer(200));
  const send = () => post(gateway, '/github', github('silence'));
  assert.equal((await send()).status, 504);
  const answeredMs = systemClock.now();
  assertHeld(await send());
  assert.equal((await untilFree(send)).status, 200);
  assert.ok(systemClock.now() - answeredMs > 1_400, 'not before the hold had run out');
  assert.deepEqual(attempts('silence'), [1, 2]);
  work.finish();
});

test('reset after the request was read: 502, held, and no second send', async () => {
  cluster.application.script('reset', reset, answer(200));
  const first = await deliver('reset');
  assert.deepEqual([first.status, outcome(first)], [502, 'uncertain']);
  assertHeld(await deliver('reset'));
  assertHeld(await deliver('reset', 1));
  assert.deepEqual(attempts('reset'), [1]);
});

test('B03: an event whose first attempt failed is forwarded again, and is a duplicate once it succeeded', async () => {
  const gateway = await cluster.gateway({ upstream, claims: shortLock });
  const { application } = cluster;
  const work = held();
  const failures: [string, number, () => Promise<void> | void, () => Promise<void> | void][] = [
    ['evt_2', 500, () => application.script('evt_2', answer(500)), () => {}],
    ['evt_2_refused', 502, () => application.down(), () => application.up()],
    ['evt_2_timeout', 504, () => application.script('evt_2_timeout', work.step), () => {}],
  ];
  for (const [id, status, break_, mend] of failures) {
    const send = () => post(gateway, '/stripe', stripe(JSON.stringify({ id })));
    await break_();
    assert.equal((await send()).status, status, id);
    await mend();
    const before_ = application.of(id).length;
    const second = await untilFree(send);
    assert.deepEqual([second.status, outcome(second)], [200, undefined], id);
    assertDuplicate(await send());
    assert.equal(application.of(id).length, before_ + 1, id);
  }
  work.finish();
});

test('B11: one event signed at two times, in other clothes, is forwarded once', async () => {
  const body = '{"id":"evt_4"}';
  const { headers } = stripe(body);
  const shuffled = [...headers.slice(2), ...headers.slice(0, 2)];
  const variants = [
    stripe(body, 60_000).headers,
    headers,
    [...headers, 'User-Agent', 'Stripe/1.0 (+https://stripe.com/docs/webhooks)'],
    ['User-Agent', 'curl/8', 'X-Forwarded-For', '203.0.113.7', ...shuffled],
  ];
  const replies = [];
  for (const [n, variant] of variants.entries()) {
    replies.push(await cluster.post(n, '/stripe', { headers: variant, body: Buffer.from(body) }));
  }
  assert.deepEqual(
    replies.map(({ status }) => status),
    [200, 200, 200, 200],
  );
  assert.deepEqual(replies.map(outcome), [undefined, 'duplicate', 'duplicate', 'duplicate']);
  assert.equal(cluster.application.of('evt_4').length, 1);
});

test('B55: lock and record are two keys with one prefix, and a duplicate is answered in one round trip', async () => {
  await using fresh = await startCluster({ gateways: 1 });
  const send = () => fresh.post(0, '/github', github('B55'));
  const work = held();
  fresh.application.script('B55', work.step);
  const first = send();
  await work.arrived;
  await until(systemClock, 'a lock and a record on every node', async () => {
    const keys = await Promise.all(fresh.nodes.map((node) => eventKeys(node, 'ho')));
    return keys.every((pair) => pair.length === 2) ? true : undefined;
  });
  for (const node of fresh.nodes) {
    const [lock = '', record] = await eventKeys(node, 'ho');
    assert.match(lock, /^ho:\{[0-9a-f]\}[\w-]{22}:l$/);
    assert.equal(record, lock.replace(/l$/, 'r'));
  }
  work.finish();
  assert.equal((await first).status, 200);
  await until(systemClock, 'records alone on all nodes', async () => {
    const keys = (await Promise.all(fresh.nodes.map((node) => eventKeys(node, 'ho')))).flat();
    return keys.length === 3 && keys.every((key) => key.endsWith(':r')) ? true : undefined;
  });
  let fastestMs = Infinity;
  for (let n = 0; n < 5; n += 1) {
    const startedMs = systemClock.now();
    assertDuplicate(await send());
    fastestMs = Math.min(fastestMs, systemClock.now() - startedMs);
  }
  assert.ok(fastestMs < 50, `${fastestMs} ms`);
});
