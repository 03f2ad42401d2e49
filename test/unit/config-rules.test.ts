import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accepted, complaints, nodes, routes } from './config-source.ts';

const shared = `service: a\n${nodes('redis://a', 'redis://b', 'redis://c')}`;
const inRedis = (more: string) => shared.replace('nodes:', `${more}, nodes:`);

test('the claim budget holds two round trips and a little more', () => {
  const just = `${inRedis('timeout: 100ms')}claims: {budget: 251ms}\n${routes()}`;
  accepted(just);
  assert.deepEqual(complaints(just.replace('251ms', '250ms')), [
    'claims.budget: found 250ms with redis.timeout 100ms; needs more than 2 × redis.timeout + 50ms, which is 250ms',
  ]);
});

test('the embedded voter answers at once: its budget is not measured against redis.timeout', () => {
  accepted(`claims: {budget: 10ms}\n${routes()}`);
});

test('B61: a budget that no claim can keep is refused with the least that is possible', () => {
  assert.deepEqual(complaints(`${inRedis('timeout: 10ms')}claims: {budget: 20ms}\n${routes()}`), [
    'claims.budget: found 20ms with redis.timeout 10ms; needs more than 2 × redis.timeout + 50ms, which is 70ms',
  ]);
});

test('the claim budget leaves two thirds of the lock to the application', () => {
  const just = `${shared}claims: {lockTtl: 1s, budget: 333ms, relyOnWatchdog: true}\n${routes()}`;
  accepted(just);
  assert.deepEqual(complaints(just.replace('333ms', '334ms')), [
    'claims.budget: found 334ms with claims.lockTtl 1s; needs less than a third of claims.lockTtl, which is 333ms',
  ]);
  assert.deepEqual(complaints(just.replace('333ms', '4s').replace('1s', '12s')), [
    'claims.budget: found 4s with claims.lockTtl 12s; needs less than a third of claims.lockTtl, which is 4s',
  ]);
});

test('B20: a lock that ends before the application may is refused, unless its renewal is relied on', () => {
  const just = `${shared}upstream: {timeout: 18500ms}\nclaims: {maxHold: 1m}\n${routes()}`;
  accepted(just);
  assert.deepEqual(complaints(just.replace('18500ms', '18501ms')), [
    'claims.lockTtl: found 20s with upstream.timeout 18501ms and claims.budget 500ms; needs at least their sum + 1s, which is 20001ms, or claims.relyOnWatchdog: true',
  ]);
  accepted(just.replace('18500ms', '50s').replace('maxHold', 'relyOnWatchdog: true, maxHold'));
});

test('the application answers within the longest hold', () => {
  const just = `${shared}upstream: {timeout: 14999ms}\nclaims: {maxHold: 15s}\n${routes()}`;
  accepted(just);
  assert.deepEqual(complaints(just.replace('14999ms', '15s')), [
    'claims.maxHold: found 15s with upstream.timeout 15s; needs more than upstream.timeout',
  ]);
});

test('the head of an answer is not waited for longer than the whole', () => {
  accepted(`upstream: {timeout: 2s, headersTimeout: 2s}\n${routes()}`);
  assert.deepEqual(complaints(`upstream: {timeout: 2s, headersTimeout: 2001ms}\n${routes()}`), [
    'upstream.headersTimeout: found 2001ms with upstream.timeout 2s; needs at most upstream.timeout',
  ]);
});

test('the memory for bodies holds one body of each route', () => {
  accepted(`limits: {memory: 2MiB}\n${routes('limits: {body: 2MiB}')}`);
  assert.deepEqual(complaints(`limits: {memory: 1MiB}\n${routes('limits: {body: 2MiB}')}`), [
    'limits.memory: found 1MiB with limits.body 2MiB of route github; needs at least one body',
  ]);
});

test('the memory for bodies holds one body at least', () => {
  accepted(`limits: {body: 2MiB, memory: 2MiB}\n${routes()}`);
  assert.deepEqual(complaints(`limits: {body: 2MiB, memory: 1MiB}\n${routes()}`), [
    'limits.memory: found 1MiB with limits.body 2MiB; needs at least one body',
  ]);
});

test('the end comes after the drain delay, and a slow delivery should fit between', () => {
  assert.deepEqual(complaints(`drain: {delay: 30s}\n${routes()}`), [
    'drain.grace: found 25s with drain.delay 30s; needs more than drain.delay',
  ]);
  const { warnings } = accepted(`${shared}drain: {delay: 11s}\n${routes()}`);
  assert.deepEqual(warnings, [
    'drain.grace: 25s is shorter than drain.delay (11s) and upstream.timeout (15s) together: a slow delivery may be cut when the gateway stops',
  ]);
});

test('deliveries and operators have a port each', () => {
  const said = ['admin.port: found 8081, which listen.port has already; needs another'];
  assert.deepEqual(complaints(`admin: {port: 8081}\n${routes()}`), said);
  assert.deepEqual(complaints(`admin: {host: 127.0.0.1, port: 8081}\n${routes()}`), said);
  accepted(`listen: {host: 127.0.0.1}\nadmin: {host: 127.0.0.2, port: 8081}\n${routes()}`);
  accepted(`listen: {port: 0}\nadmin: {port: 0}\n${routes()}`);
});

test('B07: events are remembered at least as long as the sender retries', () => {
  const retentionMs = (text: string) => accepted(text).config.routes[0]!.retentionMs;
  const day = 86_400_000;
  assert.equal(retentionMs(routes('sender: acme')), 7 * day);
  assert.equal(retentionMs(routes('sender: acme, retention: 3d')), 3 * day);
  assert.equal(retentionMs(`claims: {retention: 1h}\n${routes('sender: github')}`), 3_600_000);
  assert.deepEqual(complaints(routes('sender: acme, retention: 71h')), [
    'routes[0].retention: found 71h, but Acme may retry for 3d; needs at least that',
  ]);
  const { config, warnings } = accepted(`${shared}claims: {retention: 1h}\n${routes('sender: acme')}`);
  assert.equal(config.routes[0]!.retentionMs, 3 * day);
  assert.deepEqual(warnings, [
    'routes[0]: claims.retention (1h) is shorter than Acme may retry; this route keeps events for 3d',
  ]);
});

test('a sender that gives up before a dead gateway lets go of its lock is warned of', () => {
  const slow = `${shared}claims: {lockTtl: 301s}\n${routes('sender: acme')}`;
  assert.deepEqual(accepted(slow).warnings, [
    'routes[0]: the last retry of Acme comes after 5m, before claims.lockTtl (301s) is over: an event of github whose gateway died in the middle may be lost',
  ]);
  assert.deepEqual(accepted(slow.replace('301s', '300s')).warnings, []);
});

test('copies wait less long than the sender does', () => {
  const inFlight = (sender: string, more = '') =>
    accepted(routes(`sender: ${sender}${more}`)).config.routes[0]!.inFlight;
  assert.deepEqual(inFlight('stripe'), { policy: 'wait', waitMs: 4000, maxWaiters: 32 });
  assert.equal(inFlight('acme').waitMs, 2000);
  assert.equal(inFlight('acme', ', inFlight: {wait: 2999ms}').waitMs, 2999);
  assert.deepEqual(complaints(routes('sender: acme, inFlight: {wait: 3s}')), [
    'routes[0].inFlight.wait: found 3s, but Acme gives a delivery up after 3s; needs a shorter wait',
  ]);
});

test('duplicates get what the sender takes for success', () => {
  const status = (more: string) => accepted(routes(more)).config.routes[0]!.successStatus;
  assert.equal(status('sender: acme'), 204);
  assert.equal(status('sender: acme, duplicate: {status: 202}'), 202);
});

test('a route that anybody may post to is warned of', () => {
  const text = `${shared}routes: [{name: open, path: /open, verify: {scheme: none}, identity: {bodyHash: true}}]`;
  const { config, warnings } = accepted(text);
  assert.deepEqual(config.routes[0]!.signature, { scheme: 'none' });
  assert.deepEqual(warnings, ['routes[0].verify.scheme: none: anybody who can reach the gateway can post here']);
});

test('a rule is not judged on a section that is wrong itself', () => {
  assert.deepEqual(complaints(`upstream: {timeout: 40}\nclaims: {lockTtl: 5s}\n${routes()}`), [
    'upstream.timeout: found 40; needs a number with its unit: 300ms, 15s, 5m, 2h or 7d',
  ]);
});

test('an application that is the gateway itself: every request on no route would go round in circles', () => {
  for (const host of ['127.0.0.1', 'localhost', '[::1]'])
    assert.deepEqual(complaints(`upstream: {url: "http://${host}:8081"}\n${routes()}`), [
      `upstream.url: found http://${host}:8081, which is where the gateway itself listens (listen.port); needs the application`,
    ]);
  accepted(`upstream: {url: "http://127.0.0.1:8081"}\nlisten: {port: 9000}\n${routes()}`);
  accepted(`upstream: {url: "http://127.0.0.1:8081"}\nlisten: {host: 10.0.0.5}\n${routes()}`);
  accepted(`upstream: {url: "http://orders:8081"}\n${routes()}`);
});

test('a sample of traces that go nowhere: a warning', () => {
  assert.match(
    accepted(`tracing: {sample: 0.5}\n${routes()}`).warnings.join('\n'),
    /^tracing\.sample: without tracing\.otlp/m,
  );
});
