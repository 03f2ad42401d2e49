/** The bench in seconds: nothing can be learnt from its numbers, but all of them must be there. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bench } from './bench.ts';
import { quantile } from './figures.ts';
import { rateTable, resultTable } from './table.ts';
import { results, verdict, type Result } from './targets.ts';

test('every figure is measured, and every delivery succeeds', async () => {
  const sizes = { rounds: 1, roundMs: 150, connections: 8, warmUp: 50, latencyMs: 500, idleMs: 0, deliveries: 200 };
  const phases: string[] = [];
  const measured = await bench(sizes, (line) => phases.push(line));
  assert.deepEqual(phases, ['memory', 'deliveries per second', 'latency', 'claims per second']);
  assert.deepEqual([measured.memory.deliveries, measured.memory.failed, measured.latency.failed], [200, 0, 0]);
  for (const [way, { perSecond, cpuSecondsPer1000, failed }] of Object.entries(measured.traffic)) {
    assert.deepEqual([perSecond.length, cpuSecondsPer1000.length, failed], [1, 1, 0], way);
  }
  const all = results(measured);
  assert.equal(all.filter(({ target }) => target !== undefined).length, 9);
  for (const { name, value } of all) assert.ok(Number.isFinite(value), `${name}: ${value}`);
  assert.match(`${rateTable(measured)}\n${resultTable(all)}`, /^\| first deliveries, of @fastify\/http-proxy +\| \d/m);
});

test('a target that is missed says by how much of it', () => {
  const result = (value: number, target?: Result['target']): Result => ({
    ...{ name: 'one', value, unit: 'times' },
    ...(target && { target }),
  });
  assert.equal(verdict(result(1.2, { least: 1.2 })), 'met');
  assert.equal(verdict(result(0.9, { least: 1.2 })), 'missed by 25 %');
  assert.equal(verdict(result(0.8, { most: 0.8 })), 'met');
  assert.equal(verdict(result(3.3, { most: 3 })), 'missed by 10 %');
  assert.equal(verdict(result(7)), '');
});

test('quantiles lie between two neighbours in proportion', () => {
  assert.equal(quantile([3, 1, 2], 0.5), 2);
  assert.equal(quantile([4, 1, 2, 3], 0.5), 2.5);
  assert.equal(quantile([0, 100], 0.99), 99);
});
