/** What operators see of the ledger: its metrics, and the ladder that voters and ledger stand on together. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Registry } from 'prom-client';
import type { VoterState } from '../../src/core/ports.ts';
import { createEvents } from '../../src/events/events.ts';
import { createLog } from '../../src/events/log.ts';
import { sum } from '../support/metrics.ts';

function start(decidesAlone: boolean | undefined) {
  const registry = new Registry();
  const lines: Record<string, unknown>[] = [];
  const log = createLog('info', { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) });
  const events = createEvents({
    ...{ registry, log, routes: [], nodes: ['a', 'b', 'c'], upstreamTimeoutMs: 15_000, version: '0', wallMs: 0 },
    ...(decidesAlone !== undefined && { ledger: { decidesAlone: () => decidesAlone } }),
  });
  const value = async (name: string, labels?: Record<string, string>) => sum([await registry.metrics()], name, labels);
  const step = async (): Promise<string> => {
    const states = ['none', 'voters_missing', 'ledger_only', 'no_quorum'];
    const now = await Promise.all(states.map(async (state) => await value('hookonce_degradation', { state })));
    assert.equal(
      now.reduce((a, b) => a + b),
      1,
      'one at a time',
    );
    return states[now.indexOf(1)]!;
  };
  const voters = (...all: readonly VoterState[]): void =>
    all.forEach((state, index) => events.voterState('abc'[index]!, state));
  return { events, lines, value, step, voters };
}

test('the ladder: all voters, some of them, the ledger alone, nothing', async () => {
  const { events, step, voters } = start(true);
  assert.equal(await step(), 'no_quorum', 'before anybody was met');
  voters('up', 'up', 'up');
  assert.equal(await step(), 'none');
  voters('up', 'held', 'up');
  assert.equal(await step(), 'voters_missing');
  voters('up', 'held', 'down');
  assert.equal(await step(), 'no_quorum', 'the ledger is not up either');
  events.ledgerState(true);
  assert.equal(await step(), 'ledger_only');
  events.ledgerState(false, 'timeout');
  assert.equal(await step(), 'no_quorum');
});

test('a ledger that no route lets decide alone is no step of the ladder, and neither is none', async () => {
  for (const decidesAlone of [false, undefined]) {
    const { events, step, voters } = start(decidesAlone);
    events.ledgerState(true);
    voters('up', 'down', 'down');
    assert.equal(await step(), 'no_quorum');
    voters('up', 'up', 'down');
    assert.equal(await step(), 'voters_missing');
  }
});

test('it is said once that the ledger does not answer, and why, and once that it does', () => {
  const { events, lines } = start(false);
  for (const [up, why] of [
    [false, 'starting'],
    [false, 'starting'],
    [true],
    [true],
    [false, 'cut'],
    [false, 'refused'],
  ] as const)
    events.ledgerState(up, why);
  assert.deepEqual(
    lines.map(({ msg, why }) => [msg, why]),
    [
      ['the ledger does not answer', 'starting'],
      ['the ledger answers', undefined],
      ['the ledger does not answer', 'cut'],
      ['the ledger does not answer', 'refused'],
    ],
  );
});

test('there from the start, and only where there is a ledger', async () => {
  const { events, value } = start(false);
  for (const name of ['up', 'behind', 'dropped_total', 'write_failures_total', 'verdicts_total'])
    assert.equal(await value(`hookonce_ledger_${name}`), 0, name);
  events.ledgerBehind(3);
  events.ledgerDropped(2);
  events.ledgerWriteFailed('complete');
  events.ledgerVerdict('done');
  events.ledgerError('take', 'cut');
  events.ledgerCommand('take', 3);
  assert.equal(await value('hookonce_ledger_behind'), 3);
  assert.equal(await value('hookonce_ledger_dropped_total'), 2);
  assert.equal(await value('hookonce_ledger_write_failures_total', { operation: 'complete' }), 1);
  assert.equal(await value('hookonce_ledger_verdicts_total', { verdict: 'done' }), 1);
  assert.equal(await value('hookonce_ledger_errors_total', { class: 'cut' }), 1);
  assert.equal(await value('hookonce_ledger_command_seconds_count', { operation: 'take' }), 1);
  const without = start(undefined);
  without.events.ledgerBehind(3);
  assert.equal(await without.value('hookonce_ledger_behind'), 0);
});
