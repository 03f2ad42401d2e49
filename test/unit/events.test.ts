import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import { createEvents, type AppEvents } from '../../src/events/events.ts';
import { createLog } from '../../src/events/log.ts';

interface Rig {
  readonly events: AppEvents;
  /** Samples by name and labels, as a scrape shows them. */
  samples(): Promise<Map<string, number>>;
  readonly lines: Record<string, unknown>[];
}

function start(change: { routes?: string[]; nodes?: string[]; upstreamTimeoutMs?: number; level?: string } = {}): Rig {
  const registry = new Registry();
  const lines: Record<string, unknown>[] = [];
  const log = createLog(change.level ?? 'info', {
    write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  const events = createEvents({
    routes: (change.routes ?? ['stripe', 'orders']).map((name) => ({ name, secretNames: [name] })),
    nodes: change.nodes ?? ['a', 'b', 'c'],
    log,
    registry,
    upstreamTimeoutMs: change.upstreamTimeoutMs ?? 15_000,
    version: '1.2.3',
    wallMs: 1_500_000,
  });
  const samples = async (): Promise<Map<string, number>> => {
    const found = new Map<string, number>();
    for (const line of (await registry.metrics()).split('\n')) {
      const at = line.lastIndexOf(' ');
      if (line !== '' && !line.startsWith('#')) found.set(line.slice(0, at), Number(line.slice(at + 1)));
    }
    return found;
  };
  return { events, samples, lines };
}

test('B117: every counter of every route is there with 0 before any traffic', async () => {
  const { samples } = start();
  const seen = await samples();
  const outcomes = [
    'delivered',
    'refused',
    'duplicate',
    'in-progress',
    'rejected',
    'unreachable',
    'uncertain',
    'unavailable',
    'overloaded',
  ];
  for (const route of ['stripe', 'orders']) {
    for (const outcome of outcomes) {
      assert.equal(seen.get(`hookonce_deliveries_total{route="${route}",outcome="${outcome}"}`), 0, outcome);
    }
    assert.equal(seen.get(`hookonce_rejections_total{route="${route}",reason="bad_signature"}`), 0);
    assert.equal(seen.get(`hookonce_attempts_repeated_total{route="${route}"}`), 0);
    assert.equal(seen.get(`hookonce_in_flight{route="${route}"}`), 0);
    assert.equal(seen.get(`hookonce_delivery_duration_seconds_count{route="${route}"}`), 0);
    assert.equal(seen.get(`hookonce_overhead_seconds_count{route="${route}"}`), 0);
  }
  for (const reason of ['held', 'split', 'no_quorum', 'expired', 'lost']) {
    assert.equal(seen.get(`hookonce_lock_failures_total{reason="${reason}"}`), 0);
  }
  for (const result of ['ok', 'failed', 'lost']) {
    assert.equal(seen.get(`hookonce_lock_extensions_total{result="${result}"}`), 0);
  }
  assert.equal(seen.get('hookonce_completions_pending'), 0);
  assert.equal(seen.get('hookonce_buffered_bytes'), 0);
  assert.equal(seen.get('hookonce_quorum_available'), 0);
  assert.equal(seen.get('hookonce_build_info{version="1.2.3"}'), 1);
  assert.equal(seen.get('hookonce_claim_duration_seconds_count{result="won"}'), 0);
  assert.ok(seen.has('process_cpu_seconds_total'));
});

test('one report becomes its counters, its durations and one line', async () => {
  const { events, samples, lines } = start();
  events.deliveryStarted('stripe');
  assert.equal((await samples()).get('hookonce_in_flight{route="stripe"}'), 1);
  events.deliveryEnded({
    route: 'stripe',
    outcome: 'delivered',
    key: 'abcdefghijklmnopqrstuv',
    attempt: 1,
    status: 201,
    totalMs: 123.456,
    claimMs: 1.5,
    upstreamMs: 120,
  });
  const seen = await samples();
  assert.equal(seen.get('hookonce_in_flight{route="stripe"}'), 0);
  assert.equal(seen.get('hookonce_deliveries_total{route="stripe",outcome="delivered"}'), 1);
  assert.equal(seen.get('hookonce_delivery_duration_seconds_sum{route="stripe"}'), 0.123456);
  assert.ok(Math.abs(seen.get('hookonce_overhead_seconds_sum{route="stripe"}')! - 0.003456) < 1e-9);
  assert.equal(seen.get('hookonce_upstream_duration_seconds_sum{route="stripe",code_class="2xx"}'), 0.12);

  assert.equal(lines.length, 1);
  const { time, ...line } = lines[0]!;
  assert.equal(typeof time, 'number');
  assert.deepEqual(line, {
    level: 'info',
    msg: 'delivery',
    route: 'stripe',
    outcome: 'delivered',
    key: 'abcdefgh',
    attempt: 1,
    status: 201,
    totalMs: 123.46,
    claimMs: 1.5,
    upstreamMs: 120,
  });
});

test('a rejection is counted by its reason', async () => {
  const { events, samples } = start();
  events.deliveryEnded({ route: 'orders', outcome: 'rejected', reason: 'stale_signature', status: 401, totalMs: 1 });
  events.deliveryEnded({ route: 'unmatched', outcome: 'rejected', reason: 'no_route', status: 404, totalMs: 1 });
  const seen = await samples();
  assert.equal(seen.get('hookonce_rejections_total{route="orders",reason="stale_signature"}'), 1);
  assert.equal(seen.get('hookonce_deliveries_total{route="unmatched",outcome="rejected"}'), 1);
  assert.equal(seen.get('hookonce_rejections_total{route="unmatched",reason="no_route"}'), 1);
});

test('B118: seconds in buckets of seconds, and buckets that reach past the upstream timeout', async () => {
  for (const upstreamTimeoutMs of [100, 1_000, 15_000, 25_000, 400_000]) {
    const { events, samples } = start({ upstreamTimeoutMs });
    for (let i = 0; i < 100; i++) {
      events.deliveryEnded({ route: 'stripe', outcome: 'delivered', status: 200, totalMs: 121, upstreamMs: 120 });
    }
    const late = upstreamTimeoutMs + 20;
    events.deliveryEnded({ route: 'stripe', outcome: 'delivered', status: 200, totalMs: late, upstreamMs: late });
    const seen = await samples();
    const bucket = (le: string): number | undefined =>
      seen.get(`hookonce_upstream_duration_seconds_bucket{le="${le}",route="stripe",code_class="2xx"}`);
    if (upstreamTimeoutMs > 250) assert.equal(bucket('0.25')! - bucket('0.1')!, 100);
    const buckets = [...seen.keys()].filter((name) => name.startsWith('hookonce_upstream_duration_seconds_bucket'));
    const finite = buckets.filter((name) => !name.includes('+Inf')).map((name) => seen.get(name)!);
    assert.equal(finite.at(-1), 101, `${upstreamTimeoutMs} ms`);
  }
});

test('the state of a voter is one of a set, and a majority that is up is a quorum', async () => {
  const { events, samples, lines } = start();
  const state = async (node: string): Promise<string> => {
    const seen = await samples();
    const on = ['up', 'down', 'held'].filter(
      (each) => seen.get(`hookonce_voter_state{node="${node}",state="${each}"}`) === 1,
    );
    return on.join();
  };
  assert.equal(await state('a'), 'down');
  events.voterState('a', 'up');
  events.voterState('b', 'held');
  assert.equal(await state('a'), 'up');
  assert.equal(await state('b'), 'held');
  assert.equal((await samples()).get('hookonce_quorum_available'), 0);
  events.voterState('b', 'up');
  events.voterState('b', 'up');
  assert.equal((await samples()).get('hookonce_quorum_available'), 1);
  events.voterState('a', 'down');
  assert.equal((await samples()).get('hookonce_quorum_available'), 0);
  assert.deepEqual(
    lines.map(({ level, node, state: now }) => `${String(level)} ${String(node)} ${String(now)}`),
    ['info a up', 'warn b held', 'info b up', 'warn a down'],
  );
});

test('claims, locks, completions, waiters and memory have their metrics', async () => {
  const { events, samples } = start();
  events.claimEnded('won', 2);
  events.lockFailed('split');
  events.lockExtended('ok');
  events.attemptRepeated('stripe');
  events.waiting('stripe', 1);
  events.completionPending(1);
  events.completionPending(1);
  events.completionPending(-1);
  events.buffered(4_096);
  events.voterError('a', 'timeout');
  events.voterCommand('a', 1);
  const seen = await samples();
  assert.equal(seen.get('hookonce_claim_duration_seconds_sum{result="won"}'), 0.002);
  assert.equal(seen.get('hookonce_lock_failures_total{reason="split"}'), 1);
  assert.equal(seen.get('hookonce_lock_extensions_total{result="ok"}'), 1);
  assert.equal(seen.get('hookonce_attempts_repeated_total{route="stripe"}'), 1);
  assert.equal(seen.get('hookonce_waiting{route="stripe"}'), 1);
  assert.equal(seen.get('hookonce_completions_pending'), 1);
  assert.equal(seen.get('hookonce_buffered_bytes'), 4_096);
  assert.equal(seen.get('hookonce_voter_errors_total{node="a",class="timeout"}'), 1);
  assert.equal(seen.get('hookonce_voter_command_seconds_sum{node="a"}'), 0.001);
});

test('what operators must read is logged with its error, and a level that is off stays silent', () => {
  const { events, lines } = start({ level: 'warn' });
  events.deliveryEnded({ route: 'stripe', outcome: 'delivered', status: 200, totalMs: 1 });
  events.voterError('a', 'timeout');
  events.lateAnswer('stripe', 200);
  events.lateAnswer('stripe', undefined);
  events.completionGivenUp('abcdefghijklmnopqrstuv', 'max_hold');
  events.warn('something', { node: 'a', error: new Error('why') });
  assert.deepEqual(
    lines.map(({ level, msg }) => `${String(level)}: ${String(msg)}`),
    [
      'warn: an uncertain delivery ended without an answer',
      'error: a completion was given up: a copy of this event may be forwarded again',
      'warn: something',
    ],
  );
  assert.equal(lines[1]!['key'], 'abcdefgh');
  assert.equal((lines[2]!['err'] as { message: string }).message, 'why');
});

const routes = (...names: string[]) => names.map((name) => ({ name, secretNames: [name] }));
const applied = (...names: string[]) =>
  ({ kind: 'applied', routes: routes(...names), waiting: [], warnings: [] }) as const;

test('the series of a route come with it at 0, and go with it', async () => {
  const { events, samples } = start({ routes: ['stripe'] });
  const before = await samples();
  events.configRead('config.yaml', applied('stripe', 'orders'), 0);
  const both = await samples();
  for (const name of before.keys())
    if (name.includes('route="stripe"')) assert.equal(both.get(name.replaceAll('"stripe"', '"orders"')), 0, name);
  events.deliveryEnded({ route: 'orders', outcome: 'delivered', status: 200, totalMs: 1, upstreamMs: 1 });
  events.configRead('config.yaml', applied('stripe'), 0);
  const left = [...(await samples()).keys()].filter((name) => name.includes('route="orders"'));
  assert.deepEqual(left, []);
});

test('what a route has counted stays while it stays', async () => {
  const { events, samples } = start({ routes: ['stripe'] });
  events.deliveryEnded({ route: 'stripe', outcome: 'delivered', status: 200, totalMs: 1 });
  events.secretUsed('stripe', 'stripe');
  events.configRead('config.yaml', applied('orders', 'stripe'), 0);
  const seen = await samples();
  assert.equal(seen.get('hookonce_deliveries_total{route="stripe",outcome="delivered"}'), 1);
  assert.equal(seen.get('hookonce_delivery_duration_seconds_count{route="stripe"}'), 1);
  assert.equal(seen.get('hookonce_secret_used_total{route="stripe",secret="stripe"}'), 1);
});

test('a route that is gone is shown until the last of its deliveries has ended', async () => {
  const { events, samples } = start({ routes: ['stripe'] });
  const inFlight = async () => (await samples()).get('hookonce_in_flight{route="stripe"}');
  events.deliveryStarted('stripe');
  events.configRead('config.yaml', applied('orders'), 0);
  events.deliveryStarted('stripe');
  assert.equal(await inFlight(), 2);
  events.deliveryEnded({ route: 'stripe', outcome: 'delivered', status: 200, totalMs: 1 });
  assert.equal(await inFlight(), 1);
  events.deliveryEnded({ route: 'stripe', outcome: 'delivered', status: 200, totalMs: 1 });
  assert.equal(await inFlight(), undefined);
  // One whose body was still coming when the route went.
  events.deliveryStarted('stripe');
  events.deliveryEnded({ route: 'stripe', outcome: 'delivered', status: 200, totalMs: 1 });
  assert.equal(
    [...(await samples()).keys()].some((name) => name.includes('route="stripe"')),
    false,
  );
});

test('a secret is there with 0 as soon as it is configured, and gone with its reference', async () => {
  const { events, samples } = start({ routes: [] });
  const used = async () =>
    [...(await samples())]
      .filter(([name]) => name.startsWith('hookonce_secret_used_total'))
      .map(([name, n]) => [/secret="(.*?)"/.exec(name)![1], n]);
  const rotate = (...secretNames: string[]) =>
    events.configRead(
      'config.yaml',
      { kind: 'applied', routes: [{ name: 'stripe', secretNames }], waiting: [], warnings: [] },
      0,
    );
  rotate('old');
  events.secretUsed('stripe', 'old');
  rotate('new', 'old');
  assert.deepEqual(await used(), [
    ['old', 1],
    ['new', 0],
  ]);
  events.secretUsed('stripe', 'new');
  rotate('new');
  events.secretUsed('stripe', 'old');
  assert.deepEqual(await used(), [['new', 1]]);
});

test('B89: a configuration that is refused is a gauge at 0, a count and a line with its path', async () => {
  const { events, samples, lines } = start();
  const read = async () => {
    const seen = await samples();
    const of = (name: string) => seen.get(`hookonce_config_${name}`);
    return [
      of('last_reload_successful'),
      of('last_reload_timestamp_seconds'),
      of('reloads_total{result="refused"}'),
      of('restart_needed'),
    ];
  };
  assert.deepEqual(await read(), [1, 1_500, 0, 0]);
  events.configRead('/etc/config.yaml', { kind: 'refused', complaints: ['routes: found nothing'] }, 2_000_000);
  assert.deepEqual(await read(), [0, 1_500, 1, 0]);
  assert.deepEqual(
    [lines[0]!['level'], lines[0]!['path'], lines[0]!['complaints']],
    ['error', '/etc/config.yaml', ['routes: found nothing']],
  );
  events.configRead('/etc/config.yaml', { kind: 'unchanged' }, 3_000_000);
  assert.deepEqual(await read(), [1, 3_000, 1, 0]);
  events.configRead('/etc/config.yaml', { ...applied('a'), waiting: ['listen.port'] }, 4_000_000);
  assert.deepEqual(await read(), [1, 4_000, 1, 1]);
  assert.deepEqual(lines.at(-1)!['settings'], ['listen.port']);
  events.configRead('/etc/config.yaml', applied('a'), 5_000_000);
  assert.deepEqual(await read(), [1, 5_000, 1, 0]);
});

test('what is passed through is counted under one label, by what came of it, and is no line at info', async () => {
  const { events, samples, lines } = start();
  const of = async (name: string): Promise<number | undefined> => (await samples()).get(name);
  for (const outcome of ['proxied', 'unreachable', 'uncertain', 'gone', 'overloaded', 'unfit'])
    assert.equal(await of(`hookonce_deliveries_total{route="unmatched",outcome="${outcome}"}`), 0);
  events.proxyStarted();
  assert.equal(await of('hookonce_in_flight{route="unmatched"}'), 1);
  events.proxyEnded({ outcome: 'proxied', method: 'GET', status: 101, totalMs: 1.234 });
  assert.equal(await of('hookonce_in_flight{route="unmatched"}'), 0);
  assert.equal(await of('hookonce_deliveries_total{route="unmatched",outcome="proxied"}'), 1);
  assert.deepEqual(lines, []);
});

test('B78: why there was no answer of the application is counted by its reason', async () => {
  const { events, samples } = start();
  const of = async (reason: string): Promise<number | undefined> =>
    (await samples()).get(`hookonce_upstream_failures_total{route="stripe",reason="${reason}"}`);
  for (const [outcome, reason] of [
    ['unreachable', 'connect'],
    ['unreachable', 'connect_timeout'],
    ['uncertain', 'headers_timeout'],
    ['uncertain', 'timeout'],
    ['uncertain', 'reset'],
  ] as const) {
    assert.equal(await of(reason), 0);
    events.deliveryStarted('stripe');
    events.deliveryEnded({ route: 'stripe', outcome, reason, status: 502, totalMs: 1 });
    assert.equal(await of(reason), 1);
  }
});

test('those who wait for a place at the application are a gauge', async () => {
  const { events, samples } = start();
  const waiting = 'hookonce_queue_depth{queue="upstream",state="waiting"}';
  assert.equal((await samples()).get(waiting), 0);
  events.slotsWaiting(3);
  assert.equal((await samples()).get(waiting), 3);
});
