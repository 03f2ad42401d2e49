import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import { until } from '../../src/demo/until.ts';
import { held } from '../support/application.ts';
import { post, startCluster, type Cluster } from '../support/cluster.ts';
import { shortLock } from '../support/config.ts';
import { github, outcome, retryAfter } from '../support/deliveries.ts';
import { sum } from '../support/metrics.ts';
import { refusedStart } from '../support/refused-start.ts';

let cluster: Cluster;
before(async () => void (cluster = await startCluster({ gateways: 0 })));
after(async () => await cluster[Symbol.asyncDispose]());

const beats = async (gateway: Gateway, result = 'ok') =>
  sum([await gateway.metrics()], 'hookonce_lock_extensions_total', { result });

/** Delivers to a gateway whose application works for the given number of beats, with copies in between. */
async function workThrough(gateway: Gateway, id: string, copiesAt: readonly number[], lastBeat: number): Promise<void> {
  const work = held();
  cluster.application.script(id, work.step);
  const first = post(gateway, '/github', github(id));
  await work.arrived;
  for (const beat of [...copiesAt, lastBeat]) {
    await until(systemClock, `beat ${beat}`, async () => ((await beats(gateway)) >= beat ? true : undefined));
    if (beat === lastBeat) break;
    const copy = await post(gateway, '/github', github(id));
    assert.deepEqual([copy.status, outcome(copy)], [503, 'in-progress']);
    assert.ok(retryAfter(copy) >= 1);
  }
  work.finish();
  assert.equal((await first).status, 200);
  const late = await post(gateway, '/github', github(id));
  assert.deepEqual([late.status, outcome(late)], [200, 'duplicate']);
  assert.equal(cluster.application.of(id).length, 1);
  assert.equal(await beats(gateway, 'lost'), 0);
}

suite('work that is longer than a lock', { concurrency: true }, () => {
  test('lockTtl 1 s, work of four: forwarded once', async () => {
    const gateway = await cluster.gateway({ claims: shortLock });
    await workThrough(gateway, 'four-seconds', [4, 8], 12);
  });

  test('B20: lock life 2 s, work of six: forwarded once, with copies at 3 s and 5 s', async () => {
    const gateway = await cluster.gateway({ claims: { ...shortLock, lockTtl: '2s' } });
    await workThrough(gateway, 'D12', [5, 8], 9);
  });

  test('B20: a lock life below the upstream timeout is refused at the start, naming both', async () => {
    const { exit, output } = await refusedStart({
      upstream: { timeout: '6s' },
      claims: { lockTtl: '2s', budget: '300ms' },
    });
    assert.equal(exit.code, 2);
    assert.match(output, /lockTtl/);
    assert.match(output, /upstream\.timeout/);
  });
});
