import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import * as signers from '../../src/demo/signers.ts';
import { post, startCluster, votersUp, type Cluster } from '../support/cluster.ts';
import { gatewayConfig, routes, secretFiles, secrets } from '../support/config.ts';
import { github, outcome, stripe } from '../support/deliveries.ts';
import { eventKeys } from '../support/keys.ts';

let cluster: Cluster;
before(async () => void (cluster = await startCluster()));
after(async () => await cluster[Symbol.asyncDispose]());

const postStripe = (signature: string, body: string) =>
  cluster.post(0, '/stripe', {
    headers: ['Content-Type', 'application/json', 'Stripe-Signature', signature],
    body: Buffer.from(body),
  });

test('B14: a wrong signature leaves no key behind and does not burn the event', async () => {
  await using fresh = await startCluster({ gateways: 1 });
  const keys = async () => (await Promise.all(fresh.nodes.map((node) => eventKeys(node, 'ho')))).flat();
  const forged = await fresh.post(0, '/github', github('D9', '{"a":1}', 'another secret'));
  assert.deepEqual([forged.status, outcome(forged)], [401, 'rejected']);
  assert.deepEqual(await keys(), []);
  assert.equal((await fresh.post(0, '/github', github('D9'))).status, 200);
  assert.equal(fresh.application.of('D9').length, 1);
  assert.notDeepEqual(await keys(), [], 'the look would have found keys');
});

test('B36: signatures of every wrong shape are answered 401, and the process lives', async () => {
  const { pid } = cluster.gateways[0]!.child;
  const hex = signers.hmacHex(secrets.github, '{"a":1}');
  const name = 'X-Hub-Signature-256';
  const wrong: Record<string, string[]> = {
    missing: [],
    empty: [name, ''],
    'prefix alone': [name, 'sha256='],
    'three digits': [name, 'sha256=abc'],
    '63 digits': [name, `sha256=${hex.slice(1)}`],
    '65 digits': [name, `sha256=${hex}0`],
    '64 characters that are not hex': [name, `sha256=${'z'.repeat(64)}`],
    'SHA-1': [name, `sha1=${'a'.repeat(40)}`],
    'two lines': [name, `sha256=${'0'.repeat(64)}`, name, `sha256=${hex}`],
    '8 KiB': [name, `sha256=${'a'.repeat(8192)}`],
  };
  for (const [shape, signature] of Object.entries(wrong)) {
    const headers = ['Content-Type', 'application/json', 'X-GitHub-Delivery', 'B36', ...signature];
    const reply = await cluster.post(0, '/github', { headers, body: Buffer.from('{"a":1}') });
    assert.equal(reply.status, 401, shape);
    assert.doesNotMatch(reply.body.toString(), /\bat .*:\d+|node_modules|\.ts\b/, shape);
  }
  assert.equal((await cluster.post(0, '/github', github('B36'))).status, 200);
  assert.equal(cluster.application.of('B36').length, 1);
  assert.equal(cluster.gateways[0]!.child.pid, pid);
  assert.ok(cluster.gateways[0]!.child.running());
});

test('B38: a timestamp counts within the tolerance on both sides, and only one', async () => {
  const now = Math.floor(systemClock.wall() / 1000);
  const sign = (t: string | number, body: string): string => signers.hmacHex(secrets.stripe, `${t}.`, body);
  const cases: [string, (body: string) => string, number][] = [
    ['301 s ago', (body) => `t=${now - 301},v1=${sign(now - 301, body)}`, 401],
    ['299 s ago', (body) => `t=${now - 299},v1=${sign(now - 299, body)}`, 200],
    ['299 s ahead', (body) => `t=${now + 299},v1=${sign(now + 299, body)}`, 200],
    ['600 s ahead', (body) => `t=${now + 600},v1=${sign(now + 600, body)}`, 401],
    ['no number', (body) => `t=abc,v1=${sign('abc', body)}`, 401],
    ['none', (body) => `v1=${sign('', body)}`, 401],
    ['two', (body) => `t=${now},t=${now},v1=${sign(now, body)}`, 401],
  ];
  for (const [name, signature, status] of cases) {
    const body = JSON.stringify({ id: `B38 ${name}` });
    assert.equal((await postStripe(signature(body), body)).status, status, name);
    assert.equal(cluster.application.of(`B38 ${name}`).length, status === 200 ? 1 : 0, name);
  }
});

test('B40: any of several v1 signatures may be the right one, and only v1', async () => {
  const now = Math.floor(systemClock.wall() / 1000);
  const bad = '0'.repeat(64);
  const cases: [string, (good: string) => string, number][] = [
    ['bad, good', (good) => `t=${now},v1=${bad},v1=${good}`, 200],
    ['good, bad', (good) => `t=${now},v1=${good},v1=${bad}`, 200],
    ['v0 only', (good) => `t=${now},v0=${good}`, 401],
    ['spaces after commas', (good) => `t=${now}, v1=${bad}, v1=${good}`, 200],
    ['50 bad ones', () => `t=${now}${`,v1=${bad}`.repeat(50)}`, 401],
    ['the last of 50', (good) => `t=${now}${`,v1=${bad}`.repeat(49)},v1=${good}`, 200],
  ];
  for (const [name, signature, status] of cases) {
    const body = JSON.stringify({ id: `B40 ${name}` });
    const good = signers.hmacHex(secrets.stripe, `${now}.`, body);
    assert.equal((await postStripe(signature(good), body)).status, status, name);
  }
  let fastestMs = Infinity;
  for (let n = 0; n < 5; n += 1) {
    const startedMs = systemClock.now();
    await postStripe(`t=${now}${`,v1=${bad}`.repeat(50)}`, '{"id":"B40"}');
    fastestMs = Math.min(fastestMs, systemClock.now() - startedMs);
  }
  assert.ok(fastestMs < 50, `50 values took ${fastestMs} ms`);
});

test('B41: two secrets hold at once, and a withdrawn one no longer does', async () => {
  const gateway = await cluster.gateway();
  const deliver = (id: string, secret: string) => post(gateway, '/github', github(id, '{"a":1}', secret));
  assert.equal((await deliver('B41', secrets.github)).status, 200);
  const old = await deliver('B41', secrets.githubOld);
  assert.deepEqual([old.status, outcome(old)], [200, 'duplicate'], 'whatever signed it, it is one event');
  assert.equal((await deliver('B41-old', secrets.githubOld)).status, 200);
  assert.equal((await deliver('B41-retired', 'a retired secret')).status, 401);
  assert.equal(cluster.application.of('B41').length, 1);

  const only = routes.map((route) =>
    route['name'] === 'github' ? { ...route, secrets: [{ file: './github.secret' }] } : route,
  );
  const urls = cluster.nodes.map(({ url }) => url);
  await gateway.restart({ config: gatewayConfig(cluster.application.url, urls, { routes: only }), files: secretFiles });
  await votersUp(gateway, 3);
  assert.equal((await deliver('B41-withdrawn', secrets.githubOld)).status, 401);
  assert.equal((await deliver('B41-current', secrets.github)).status, 200);
});

test('a signature that is fresh and right passes for Stripe', async () => {
  assert.equal((await cluster.post(0, '/stripe', stripe('{"id":"fresh"}'))).status, 200);
});
