/** For each outcome: the same delivery is found in the metrics, in the log, in its trace, and by explain. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import type { OutcomeKind } from '../../src/core/delivery.ts';
import { exchange, type Reply } from '../../src/demo/exchange.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held, type Held } from '../support/application.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { routes, secrets } from '../support/config.ts';
import { github } from '../support/deliveries.ts';
import { sum } from '../support/metrics.ts';
import { startCollector, type Collector } from './collector.ts';

const signed = { sender: 'github', secrets: [{ file: './github.secret' }] };
const ordered = {
  ...{ name: 'ordered', path: '/ordered' },
  ordering: { resource: { json: '/of' }, version: { json: '/v', type: 'number' } },
};

const stack = new AsyncDisposableStack();
let collector: Collector;
let cluster: Cluster;
before(async () => {
  collector = stack.use(await startCollector());
  const queue = stack.use(await startRedisServer({ appendonly: 'always' }));
  cluster = await startCluster({
    nodes: 1,
    gateways: 1,
    settings: {
      admin: { token: { file: './admin.secret' } },
      upstream: { timeout: '2s', maxInFlight: 2, maxWaiting: 0 },
      claims: { unknownHold: '30s' },
      routes: [...routes, { ...signed, name: 'jobs', path: '/jobs', mode: 'async' }, { ...signed, ...ordered }],
      top: { tracing: { otlp: collector.url }, queue: { url: queue.url } },
    },
  });
  stack.use(cluster);
});
after(async () => await stack.disposeAsync());

const gateway = () => cluster.gateways[0]!;

interface Trace {
  readonly id: string;
  readonly line: readonly string[];
}
const newTrace = (): Trace => {
  const id = randomBytes(16).toString('hex');
  return { id, line: ['traceparent', `00-${id}-00f067aa0ba902b7-01`] };
};

interface What {
  readonly route?: string;
  readonly body?: string;
  readonly secret?: string;
}

async function deliver(
  id: string,
  { route = 'github', body = '{}', secret }: What = {},
  trace = newTrace(),
): Promise<Reply> {
  const message = github(id, body, secret);
  return await cluster.post(0, `/${route}`, { ...message, headers: [...message.headers, ...trace.line] });
}

const counted = async (route: string, outcome: OutcomeKind): Promise<number> =>
  sum([await gateway().metrics()], 'hookonce_deliveries_total', { route, outcome });

interface Line {
  readonly outcome: string;
  readonly status: number;
  readonly key?: string;
  readonly reason?: string;
  readonly totalMs: number;
}

/** The delivery's line, found by its trace. */
const lineOf = async (traceId: string): Promise<Line> =>
  await until(systemClock, 'a log line', () => {
    const line = gateway().child.lines.find((one) => one.includes('"msg":"delivery"') && one.includes(traceId));
    return line === undefined ? undefined : (JSON.parse(line) as Line);
  });

interface Explained {
  readonly key: string;
  readonly summary: string;
  readonly leads: { readonly grep: string; readonly traceId?: string };
  readonly deliveries: readonly { readonly outcome: string; readonly traceId: string; readonly totalMs: number }[];
}

async function explain(route: string, id: string): Promise<Explained> {
  const { body } = await exchange(`${gateway().adminUrl}/-/explain/${route}?id=${id}`, {
    headers: ['Authorization', `Bearer ${secrets.admin}`],
  });
  return JSON.parse(body.toString()) as Explained;
}

/** What the spans must say, by trace; they are exported in batches, the last of them at the end. */
const expected = new Map<string, Pick<Line, 'outcome' | 'status' | 'reason'>>();

/** Delivers `id` and finds it everywhere. `keyed`: whether it came far enough to be named. */
async function findEverywhere(
  id: string,
  outcome: OutcomeKind,
  { status, keyed = true, ...what }: What & { status: number; keyed?: boolean },
): Promise<Explained> {
  const { route = 'github' } = what;
  const before = await counted(route, outcome);
  const trace = newTrace();
  const reply = await deliver(id, what, trace);
  assert.equal(reply.status, status);
  assert.equal(await counted(route, outcome), before + 1, 'metric');

  const line = await lineOf(trace.id);
  assert.deepEqual([line.outcome, line.status], [outcome, status], 'log');

  expected.set(trace.id, line);

  const explained = await explain(route, id);
  const found = explained.deliveries.find(({ traceId }) => traceId === trace.id);
  assert.equal(line.key, keyed ? explained.key.slice(0, 8) : undefined);
  assert.equal(explained.leads.grep, `"key":"${explained.key.slice(0, 8)}"`);
  if (keyed) assert.equal(found?.outcome, outcome, 'explain');
  else assert.equal(found, undefined);
  return explained;
}

/** Makes the application work on another event until the test is over. */
async function busy(id: string): Promise<Held & { over(): Promise<void> }> {
  const work = held();
  cluster.application.script(id, work.step);
  const reply = deliver(id);
  await work.arrived;
  const over = async (): Promise<void> => {
    work.finish();
    await reply;
  };
  return { ...work, over };
}

test('delivered, then duplicate', async () => {
  assert.match((await findEverywhere('one', 'delivered', { status: 200 })).summary, /answered as a duplicate/);
  const again = await findEverywhere('one', 'duplicate', { status: 200 });
  assert.deepEqual(
    again.deliveries.map(({ outcome }) => outcome),
    ['delivered', 'duplicate'],
  );
  assert.equal(again.leads.traceId, again.deliveries[0]!.traceId, 'the trace of the one that handled it');
});

test('refused', async () => {
  cluster.application.script('refused', answer(500));
  const { summary } = await findEverywhere('refused', 'refused', { status: 500 });
  assert.match(summary, /forwarded, as attempt 2/);
});

test('in-progress', async () => {
  const work = await busy('in-progress');
  const { summary } = await findEverywhere('in-progress', 'in-progress', { status: 503 });
  assert.match(summary, /an attempt is running/);
  await work.over();
});

test('overloaded', async () => {
  const [one, two] = [await busy('busy-1'), await busy('busy-2')];
  const { summary } = await findEverywhere('overloaded', 'overloaded', { status: 503 });
  assert.match(summary, /forwarded, as attempt 1/, 'the attempt was taken back');
  await one.over();
  await two.over();
});

test('rejected: nothing was looked up, so nothing is known of the event', async () => {
  const { summary } = await findEverywhere('rejected', 'rejected', { status: 401, keyed: false, secret: 'wrong' });
  assert.match(summary, /no attempt is remembered/);
});

test('unreachable', async () => {
  await cluster.application.down();
  const { summary } = await findEverywhere('unreachable', 'unreachable', { status: 502 });
  await cluster.application.up();
  assert.match(summary, /forwarded, as attempt 1/);
});

test('uncertain', async () => {
  const work = held();
  cluster.application.script('uncertain', work.step);
  const { summary } = await findEverywhere('uncertain', 'uncertain', { status: 504 });
  assert.match(summary, /has not answered in time/);
  work.finish();
});

test('accepted', async () => {
  const { summary } = await findEverywhere('accepted', 'accepted', { status: 202, route: 'jobs' });
  assert.match(summary, /answered as a duplicate/);
});

test('stale', async () => {
  await deliver('newer', { route: 'ordered', body: '{"of":"order-1","v":2}' });
  const older = { status: 200, route: 'ordered', body: '{"of":"order-1","v":1}' };
  const { summary } = await findEverywhere('older', 'stale', older);
  assert.match(summary, /answered as a duplicate/);
});

test('unavailable', async () => {
  const [node] = cluster.nodes;
  await node!.kill();
  const { summary } = await findEverywhere('unavailable', 'unavailable', { status: 503 });
  assert.match(summary, /too few voters count/);
});

test('and each of these has its trace', async () => {
  // With the quorum gone the gateway would not end before its grace period; the batch goes out by itself.
  assert.equal(expected.size, 11);
  for (const [id, { outcome, status, reason }] of expected) {
    const { attributes } = await collector.span('receive', ({ traceId }) => traceId === id);
    assert.deepEqual(
      [attributes['hookonce.outcome'], attributes['http.response.status_code'], attributes['hookonce.reason']],
      [outcome, status, reason],
    );
  }
});
