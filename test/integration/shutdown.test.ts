import assert from 'node:assert/strict';
import { test } from 'node:test';
import { held } from '../support/application.ts';
import { startCluster } from '../support/cluster.ts';
import { github, outcome } from '../support/deliveries.ts';

test('SIGTERM finishes what is in flight, keeps its result, and ends with 0', async () => {
  await using cluster = await startCluster();
  const work = held();
  cluster.application.script('in-flight', work.step);
  const reply = cluster.post(0, '/github', github('in-flight'));
  await work.arrived;
  const ended = cluster.gateways[0]!.terminate();
  work.finish();
  assert.equal((await reply).status, 200);
  assert.deepEqual(await ended, { code: 0, signal: null });
  assert.equal(outcome(await cluster.post(1, '/github', github('in-flight'))), 'duplicate');
});
