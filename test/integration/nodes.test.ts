import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { held } from '../support/application.ts';
import { post, startCluster, type Cluster } from '../support/cluster.ts';
import { shortLock } from '../support/config.ts';
import { github, outcome, retryAfter } from '../support/deliveries.ts';
import { eventKeys, onNode } from '../support/keys.ts';

const budgetMs = 500;

// A node that was killed counts again when the longest lock from before would have run out: short ones here.
let cluster: Cluster;
before(async () => {
  cluster = await startCluster({ redis: { appendonly: 'always' }, settings: { claims: shortLock } });
});
after(async () => await cluster[Symbol.asyncDispose]());

const deliver = (id: string, n = 0) => cluster.post(n, '/github', github(id));

/** Twenty events, at both gateways in turn, are all delivered within the time that claim and completion may take. */
async function allDelivered(name: string): Promise<void> {
  for (let n = 0; n < 20; n += 1) {
    const startedMs = systemClock.now();
    const reply = await deliver(`${name}-${n}`, n);
    const tookMs = systemClock.now() - startedMs;
    assert.equal(reply.status, 200, `${name}-${n}`);
    assert.ok(tookMs < 2 * budgetMs, `${name}-${n} took ${tookMs} ms`);
    assert.equal(cluster.application.of(`${name}-${n}`).length, 1);
  }
}

/** Both gateways answer 503 in time and forward nothing. */
async function allUnavailable(name: string): Promise<void> {
  const startedMs = systemClock.now();
  const replies = await Promise.all(Array.from({ length: 10 }, (_, n) => deliver(`${name}-${n}`, n)));
  const tookMs = systemClock.now() - startedMs;
  assert.deepEqual(
    [...new Set(replies.map((reply) => `${reply.status} ${outcome(reply)} ${retryAfter(reply)}`))],
    ['503 unavailable 1'],
  );
  assert.ok(tookMs < 4 * budgetMs, `answered after ${tookMs} ms`);
  for (let n = 0; n < 10; n += 1) assert.equal(cluster.application.of(`${name}-${n}`).length, 0);
}

/** The events of `allUnavailable` are taken once the nodes are back, by the same processes. */
async function recovers(name: string): Promise<void> {
  const pids = cluster.gateways.map(({ child }) => child.pid);
  for (let n = 0; n < 10; n += 1) {
    const { ok } = await deliverUntilDone(systemClock, () => deliver(`${name}-${n}`, n), {
      retryAfterScale: 0.2,
      maxTries: 50,
    });
    assert.ok(ok, `${name}-${n} is taken again`);
    assert.equal(cluster.application.of(`${name}-${n}`).length, 1);
  }
  assert.deepEqual(
    cluster.gateways.map(({ child }) => child.pid),
    pids,
  );
  assert.ok(cluster.gateways.every(({ child }) => child.running()));
}

test('one node frozen: everything is delivered; two: 503; both back: it works again', async () => {
  const [, second, third] = cluster.nodes;
  third!.freeze();
  await allDelivered('one-frozen');
  second!.freeze();
  await allUnavailable('two-frozen');
  second!.thaw();
  third!.thaw();
  await recovers('two-frozen');
});

test('one node killed: everything is delivered; two: 503; both back: it works again', async () => {
  const [, second, third] = cluster.nodes;
  await third!.kill();
  await allDelivered('one-killed');
  await second!.kill();
  await allUnavailable('two-killed');
  await second!.start();
  await third!.start();
  await recovers('two-killed');
});

test('B54: in flight elsewhere, no nodes, and a mixed vote are told apart', async () => {
  await using fresh = await startCluster();
  const reasons = ['held', 'no_quorum', 'split'];
  const counts = () => Promise.all(reasons.map((reason) => fresh.metric('hookonce_lock_failures_total', { reason })));
  const copy = () => fresh.post(1, '/github', github('B54'));
  const [, second, third] = fresh.nodes;
  const work = held();
  fresh.application.script('B54', work.step);
  const winner = fresh.post(0, '/github', github('B54'));
  const { key } = await work.arrived;

  const inFlight = await copy();
  assert.deepEqual([inFlight.status, outcome(inFlight)], [503, 'in-progress']);
  assert.deepEqual(await counts(), [1, 0, 0]);

  // One node says locked, one is free, one does not answer.
  const [lock = ''] = (await eventKeys(second!, 'ho')).filter((name) => name.endsWith(`${key}:l`));
  await onNode(second!, (redis) => redis.del(lock));
  third!.freeze();
  const mixed = await copy();
  assert.deepEqual([mixed.status, outcome(mixed)], [503, 'in-progress']);
  assert.deepEqual(await counts(), [1, 0, 1]);
  third!.thaw();
  work.finish();
  assert.equal((await winner).status, 200);
  assert.equal(fresh.application.of('B54').length, 1);

  for (const node of fresh.nodes) node.freeze();
  const none = await fresh.post(0, '/github', github('B54-none'));
  assert.deepEqual([none.status, outcome(none)], [503, 'unavailable']);
  assert.deepEqual(await counts(), [1, 1, 1]);
  for (const node of fresh.nodes) node.thaw();
});

test('B44: nodes that accept connections and never answer', async () => {
  await using silent = await startCluster({ gateways: 0, proxied: true });
  silent.proxies[2]!.stall();
  const gateway = await silent.gateway({ claims: shortLock }, 2);
  const send = (id: string) => post(gateway, '/github', github(id));
  const startedMs = systemClock.now();
  assert.equal((await send('D20')).status, 200);
  assert.ok(systemClock.now() - startedMs < 2 * budgetMs);

  silent.proxies[1]!.stall();
  const stalledMs = systemClock.now();
  const refused = await send('D20-two-silent');
  assert.deepEqual([refused.status, outcome(refused), retryAfter(refused)], [503, 'unavailable', 1]);
  assert.ok(systemClock.now() - stalledMs < 2 * budgetMs);
  assert.equal(silent.application.of('D20-two-silent').length, 0);
});

test('B44: a node that is configured for TLS and speaks none', async () => {
  const [first, second, third] = cluster.nodes;
  const nodes = [{ url: first!.url }, { url: second!.url }, { url: third!.url.replace('redis:', 'rediss:') }];
  const gateway = await cluster.gateway({ claims: shortLock, redis: { nodes } }, 2);
  const startedMs = systemClock.now();
  assert.equal((await post(gateway, '/github', github('D20-tls'))).status, 200);
  assert.ok(systemClock.now() - startedMs < 2 * budgetMs);
});
