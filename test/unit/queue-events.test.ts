/** What is told of the queue: series that are there from the start, and lines that hold no whole key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import type { JobReport } from '../../src/core/ports.ts';
import { createEvents, type AppEvents } from '../../src/events/events.ts';
import { bar } from '../../src/operator/dlq.ts';
import { sum } from '../support/metrics.ts';

function start(queue: boolean) {
  const registry = new Registry();
  const lines: Record<string, unknown>[] = [];
  const log = pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const routes = [{ name: 'later', async: { acceptedStatus: 202 } }, { name: 'now' }];
  const options = { routes, nodes: [], log, registry, upstreamTimeoutMs: 1000, version: '0', wallMs: 0, queue };
  const events: AppEvents = createEvents(options);
  const value = async (name: string, labels?: Record<string, string>) => sum([await registry.metrics()], name, labels);
  return { registry, lines, events, value };
}

const report = (change: Partial<JobReport> = {}): JobReport => ({
  ...{ route: 'later', job: 'one', outcome: 'delivered', fate: { kind: 'done' }, queueAttempt: 1 },
  ...{ totalMs: 5, waitedMs: 7, key: 'AAAAAAAABBBBBBBBCCCCCC' },
  ...change,
});

test('without a queue nothing of it is there', async () => {
  const { registry } = start(false);
  assert.doesNotMatch(await registry.metrics(), /hookonce_(queue_(up|durable|oldest|attempts)|enqueues)/);
});

test('with one, every series of a route in async mode is there with 0', async () => {
  const { registry } = start(true);
  const page = await registry.metrics();
  for (const result of ['queued', 'failed', 'unknown'])
    assert.ok(page.includes(`hookonce_enqueues_total{route="later",result="${result}"} 0`));
  for (const result of ['delivered', 'duplicate', 'waited', 'failed', 'dead'])
    assert.ok(page.includes(`hookonce_queue_attempts_total{route="later",result="${result}"} 0`));
  for (const state of ['waiting', 'delayed', 'active', 'dead'])
    assert.ok(page.includes(`hookonce_queue_depth{queue="async",state="${state}"} 0`));
  assert.doesNotMatch(page, /enqueues_total\{route="now"/);
});

test('tries are counted by what became of them, and told without the whole key', async () => {
  const { events, lines, value } = start(true);
  const attempt = {
    wallMs: 1,
    attempt: 2,
    outcome: 'refused',
    status: 500,
    message: 'answered 500',
    tookMs: 3,
  } as const;
  events.jobEnded(report());
  events.jobEnded(report({ outcome: 'duplicate' }));
  events.jobEnded(report({ outcome: 'in-progress', fate: { kind: 'wait', ms: 10 } }));
  events.jobEnded(report({ outcome: 'refused', fate: { kind: 'retry', ms: 1000, attempt } }));
  events.jobEnded(report({ outcome: 'refused', fate: { kind: 'dead', attempt } }));
  events.jobEnded(report({ route: 'gone' }));
  for (const result of ['delivered', 'duplicate', 'waited', 'failed', 'dead'])
    assert.equal(await value('hookonce_queue_attempts_total', { route: 'later', result }), 1, result);
  assert.equal(await value('hookonce_queue_attempts_total', { route: 'unmatched' }), 1);
  assert.doesNotMatch(JSON.stringify(lines), /AAAAAAAAB/);
  const dead = lines.find(({ fate }) => fate === 'dead')!;
  assert.deepEqual([dead['status'], dead['message'], dead['key']], [500, 'answered 500', 'AAAAAAAA']);
});

test('a route that leaves async mode takes its series with it', async () => {
  const { events, registry } = start(true);
  events.configRead('x', { kind: 'applied', routes: [{ name: 'later' }], waiting: [], warnings: [] }, 0);
  assert.doesNotMatch(await registry.metrics(), /enqueues_total\{route="later"/);
});

test('a bar shows how far work on many has come', () => {
  assert.equal(bar(5, 10, 10), '[#####.....] 5 of 10');
  assert.equal(bar(0, 0, 4), '[####] 0 of 0');
  assert.equal(bar(10, 10, 4), '[####] 10 of 10');
});
