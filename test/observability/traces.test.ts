import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { allHeaders, header, type RawHeaders } from '../../src/core/delivery.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held, scriptedApplication } from '../support/application.ts';
import { post, startCluster } from '../support/cluster.ts';
import type { Settings } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';
import { sum } from '../support/metrics.ts';
import { startSolo } from '../support/solo.ts';
import { startCollector } from './collector.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';
const traceparent = `00-${traceId}-${spanId}-01`;

const tracing = (otlp: string, more: object = {}): Settings => ({ top: { tracing: { otlp, ...more } } });
const traced = (id: string, ...lines: string[]) => {
  const { headers, body } = github(id);
  return { headers: [...headers, ...lines], body };
};
const traceparents = (headers: RawHeaders): string[] => allHeaders(headers, 'traceparent');

async function rig(more: object = {}) {
  const stack = new AsyncDisposableStack();
  const collector = stack.use(await startCollector());
  const application = stack.use(await scriptedApplication());
  const gateway = stack.use(await startSolo(application.url, tracing(collector.url, more)));
  return { collector, application, gateway, [Symbol.asyncDispose]: async () => await stack.disposeAsync() };
}

test('B119: the application gets exactly one traceparent: the same trace, a span of the gateway, flags kept', async () => {
  await using at = await rig();
  await post(at.gateway, '/github', traced('one', 'TraceParent', traceparent, 'tracestate', 'a=1', 'baggage', 'b=2'));
  await at.gateway.terminate();
  const [visit] = at.application.of('one');
  const forward = await at.collector.span('forward');
  assert.deepEqual(traceparents(visit!.headers), [`00-${traceId}-${forward.spanId}-01`]);
  assert.notEqual(forward.spanId, spanId);
  assert.equal(header(visit!.headers, 'tracestate'), 'a=1');
  assert.equal(header(visit!.headers, 'baggage'), 'b=2');
  const receive = await at.collector.span('receive');
  assert.deepEqual([receive.traceId, receive.parentId], [traceId, spanId]);
});

test('B119: a traceparent that is malformed, or there twice, starts a new trace', async () => {
  await using at = await rig();
  const shapes: RawHeaders[] = [
    ['traceparent', '00-xyz'],
    ['traceparent', traceparent, 'tracestate', 'a=1', 'traceparent', traceparent],
    ['traceparent', `00-${'0'.repeat(32)}-${spanId}-01`],
    ['traceparent', `ff-${traceId}-${spanId}-01`],
    [],
  ];
  for (const [n, lines] of shapes.entries()) {
    await post(at.gateway, '/github', traced(`shape-${n}`, ...lines));
    const { headers } = at.application.of(`shape-${n}`)[0]!;
    const [given, ...others] = traceparents(headers);
    assert.deepEqual(others, []);
    assert.match(given!, /^00-[0-9a-f]{32}-[0-9a-f]{16}-03$/);
    assert.ok(!given!.includes(traceId));
    assert.equal(header(headers, 'tracestate'), undefined, 'the state of a trace that is not this one');
  }
});

test('B119: without tracing, what the sender says of its trace goes on as it came', async () => {
  await using application = await scriptedApplication();
  await using gateway = await startSolo(application.url);
  const lines = ['TraceParent', '00-odd', 'traceparent', traceparent, 'tracestate', 'a=1'];
  await post(gateway, '/github', traced('as-is', ...lines));
  assert.deepEqual(traceparents(application.of('as-is')[0]!.headers), ['00-odd', traceparent]);
});

test('whether a trace is recorded is the decision of the sender, and of tracing.sample where it says nothing', async () => {
  await using at = await rig({ sample: 0 });
  await post(at.gateway, '/github', traced('not-recorded', 'traceparent', `00-${traceId}-${spanId}-00`));
  await post(at.gateway, '/github', traced('nothing-said'));
  await post(at.gateway, '/github', traced('recorded', 'traceparent', traceparent));
  await at.gateway.terminate();
  const flags = (id: string) => traceparents(at.application.of(id)[0]!.headers)[0]!.slice(-2);
  assert.deepEqual([flags('not-recorded'), flags('nothing-said'), flags('recorded')], ['00', '02', '01']);
  assert.match(
    traceparents(at.application.of('not-recorded')[0]!.headers)[0]!,
    new RegExp(`^00-${traceId}-(?!${spanId})`),
  );
  assert.deepEqual(at.collector.spans.map(({ name }) => name).sort(), ['claim', 'complete', 'forward', 'receive']);
});

test('one delivery is four spans with the attributes of HTTP, and no query', async () => {
  await using at = await rig();
  await post(at.gateway, '/github?token=secret-in-the-query', traced('spans'));
  await at.gateway.terminate();
  const [receive, claim, forward, complete] = await Promise.all(
    ['receive', 'claim', 'forward', 'complete'].map((name) => at.collector.span(name)),
  );
  assert.deepEqual([receive!.kind, claim!.kind, forward!.kind, complete!.kind], [2, 1, 3, 1]);
  for (const step of [claim!, forward!, complete!])
    assert.deepEqual([step.traceId, step.parentId], [receive!.traceId, receive!.spanId]);
  const { 'client.address': client, 'hookonce.key': key, ...known } = receive!.attributes;
  assert.equal(client, '127.0.0.1');
  assert.match(String(key), /^[\w-]{8}$/);
  assert.deepEqual(known, {
    'http.request.method': 'POST',
    'http.route': '/github',
    'url.scheme': 'http',
    'url.path': '/github',
    'http.response.status_code': 200,
    'hookonce.route': 'github',
    'hookonce.outcome': 'delivered',
    'hookonce.attempt': 1,
  });
  assert.deepEqual(claim!.attributes, { 'hookonce.claim.result': 'won', 'hookonce.attempt': 1 });
  assert.deepEqual(forward!.attributes, {
    'http.request.method': 'POST',
    'server.address': '127.0.0.1',
    'server.port': at.application.port,
    'url.full': `${at.application.url}/github`,
    'http.response.status_code': 200,
  });
  assert.equal(receive!.resource['service.name'], 'hookonce');
  assert.ok(forward!.durationNs <= receive!.durationNs);
  assert.ok(!JSON.stringify(at.collector.spans, (_, v: unknown) => (typeof v === 'bigint' ? 0 : v)).includes('secret'));
  assert.deepEqual([...at.collector.paths], ['/v1/traces']);
});

test('a failing application fails the span of the forward, and of the delivery when it is answered 5xx', async () => {
  await using at = await rig();
  at.application.script('fails', answer(500));
  await post(at.gateway, '/github', traced('fails'));
  await post(at.gateway, '/github', { headers: ['X-GitHub-Delivery', 'x'], body: Buffer.from('{}') });
  await at.gateway.terminate();
  const forward = await at.collector.span('forward');
  assert.deepEqual([forward.status, forward.attributes['error.type']], [2, '500']);
  const refused = await at.collector.span('receive', ({ attributes }) => attributes['hookonce.outcome'] === 'refused');
  assert.equal(refused.status, 2);
  const rejected = await at.collector.span(
    'receive',
    ({ attributes }) => attributes['hookonce.outcome'] === 'rejected',
  );
  assert.deepEqual([rejected.status, rejected.attributes['hookonce.reason']], [0, 'missing_signature']);
});

test('a duplicate is linked to the delivery that handled its event, on another gateway and while it waited', async () => {
  await using collector = await startCollector();
  await using cluster = await startCluster({
    settings: { ...tracing(collector.url), route: { inFlight: { policy: 'wait', wait: '4s' } } },
  });
  const work = held();
  cluster.application.script('twice', work.step);
  const first = cluster.post(0, '/github', traced('twice', 'traceparent', traceparent));
  await work.arrived;
  const waiting = cluster.post(0, '/github', github('twice'));
  await until(systemClock, 'a copy that waits', async () =>
    sum([await cluster.gateways[0]!.metrics()], 'hookonce_waiting') === 1 ? true : undefined,
  );
  work.finish();
  assert.equal((await first).status, 200);
  assert.equal(outcome(await waiting), 'duplicate');
  assert.equal(outcome(await cluster.post(1, '/github', github('twice'))), 'duplicate');
  await Promise.all(cluster.gateways.map((gateway) => gateway.terminate()));

  const duplicates = collector.spans.filter(({ attributes }) => attributes['hookonce.outcome'] === 'duplicate');
  const winner = await collector.span('receive', ({ attributes }) => attributes['hookonce.outcome'] === 'delivered');
  assert.equal(duplicates.length, 2);
  for (const { links, traceId: own, attributes } of duplicates) {
    assert.deepEqual(links, [{ traceId, spanId: winner.spanId }]);
    assert.equal(attributes['hookonce.handled_by.trace_id'], traceId);
    assert.notEqual(own, traceId);
  }
});

test("work off the queue is linked to the delivery that put it there, in the same trace, and the application sees the work's", async () => {
  await using queue = await startRedisServer({ appendonly: 'always' });
  await using collector = await startCollector();
  await using application = await scriptedApplication();
  const top = { tracing: { otlp: collector.url }, queue: { url: queue.url } };
  await using gateway = await startSolo(application.url, { top, route: { mode: 'async' } });
  const reply = await post(gateway, '/github', traced('queued', 'traceparent', traceparent));
  assert.equal(reply.status, 202);
  const work = await collector.span('work');
  const receive = await collector.span('receive');
  const forward = await collector.span('forward');
  assert.deepEqual([work.traceId, work.kind, work.links], [traceId, 5, [{ traceId, spanId: receive.spanId }]]);
  assert.equal(work.attributes['hookonce.outcome'], 'delivered');
  assert.equal(forward.parentId, work.spanId);
  assert.deepEqual(traceparents(application.of('queued')[0]!.headers), [`00-${traceId}-${forward.spanId}-01`]);
});

test('B121: what is waiting for export is flushed at the end', async () => {
  await using at = await rig();
  await post(at.gateway, '/github', github('last'));
  assert.deepEqual(at.collector.spans, [], 'the batch waits for more');
  assert.deepEqual(await at.gateway.terminate(), { code: 0, signal: null });
  assert.equal(at.collector.spans.filter(({ name }) => name === 'receive').length, 1);
});

test('B121: a collector that never answers holds the end up for no longer than the limit', async () => {
  await using collector = await startCollector({ silent: true });
  await using application = await scriptedApplication();
  await using gateway = await startSolo(application.url, tracing(collector.url));
  await post(gateway, '/github', github('black-hole'));
  const sinceMs = systemClock.now();
  assert.deepEqual(await gateway.terminate(), { code: 0, signal: null });
  // The limit is 2 s; the rest is room for a busy machine.
  assert.ok(systemClock.now() - sinceMs < 10_000);
});

test('a collector that refuses is a counter and one warning, and no delivery waits for it', async () => {
  await using collector = await startCollector({ status: 400 });
  await using application = await scriptedApplication();
  await using gateway = await startSolo(application.url, tracing(collector.url));
  assert.equal((await post(gateway, '/github', github('refused'))).status, 200);
  const failed = async () => sum([await gateway.metrics()], 'hookonce_trace_spans_total', { result: 'failed' });
  await until(systemClock, 'spans that were refused', async () => ((await failed()) > 0 ? true : undefined));
  const warnings = gateway.child.lines.filter((line) => line.includes('the collector does not take traces'));
  assert.equal(warnings.length, 1);
});
