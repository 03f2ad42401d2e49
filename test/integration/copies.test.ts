/** Ten thousand copies of one event, over three gateways. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Pool } from 'undici';
import { systemClock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import { held } from '../support/application.ts';
import { startCluster } from '../support/cluster.ts';
import { github } from '../support/deliveries.ts';
import { inFlightRoutes } from '../support/in-flight-routes.ts';
import { sum } from '../support/metrics.ts';

const copies = 10_000;
/** Copies that may wait at one gateway; `inFlight.maxWaiters` as it is by itself. */
const maxWaiters = 32;
const connections = 80;
const bodyBytes = 20_000;

test('10,000 copies of one event: forwarded once, every copy answered, memory bounded', async () => {
  // The application works for as long as the senders need, however busy the machine is.
  const settings = { routes: inFlightRoutes, upstream: { timeout: '60s' }, claims: { relyOnWatchdog: true } };
  await using cluster = await startCluster({ gateways: 3, settings });
  const { headers, body } = github('many', Buffer.alloc(bodyBytes, 'x'));
  await using stack = new AsyncDisposableStack();
  const pools = cluster.gateways.map(({ url }) => {
    const pool = new Pool(url, { connections });
    stack.defer(async () => await pool.destroy());
    return pool;
  });
  const statuses: number[] = [];
  const send = async (n: number): Promise<void> => {
    const reply = await pools[n % pools.length]!.request({
      path: '/wait',
      method: 'POST',
      headers: [...headers],
      body,
    });
    await reply.body.dump();
    statuses.push(reply.statusCode);
  };
  const samples = async (name: string): Promise<number[]> =>
    await Promise.all(cluster.gateways.map(async (gateway) => sum([await gateway.metrics()], name)));

  const idle = await samples('process_resident_memory_bytes');
  const work = held();
  cluster.application.script('many', work.step);
  const first = send(0);
  await work.arrived;
  let next = 1;
  const lane = async (): Promise<void> => {
    while (next < copies) {
      next += 1;
      await send(next);
    }
  };
  const lanes = Promise.all(Array.from({ length: connections * pools.length }, lane));
  await until(
    systemClock,
    'all but those that wait',
    () => (statuses.length > 0.9 * copies ? true : undefined),
    60_000,
  );
  assert.ok(!statuses.includes(200), 'nobody is told 2xx before the application has answered');
  for (const waiting of await samples('hookonce_waiting')) assert.ok(waiting <= maxWaiters, `${waiting} wait`);
  for (const bytes of await samples('hookonce_buffered_bytes')) {
    assert.ok(bytes <= (1 + connections) * bodyBytes, `${bytes} bytes of bodies are held`);
  }
  work.finish();
  await Promise.all([first, lanes]);

  assert.equal(statuses.length, copies);
  assert.deepEqual(new Set(statuses), new Set([200, 503]));
  assert.deepEqual(
    cluster.application.of('many').map(({ attempt }) => attempt),
    [1],
  );
  assert.deepEqual(await samples('hookonce_waiting'), [0, 0, 0]);
  assert.deepEqual(await samples('hookonce_buffered_bytes'), [0, 0, 0]);
  for (const [n, bytes] of (await samples('process_resident_memory_bytes')).entries()) {
    assert.ok(bytes - idle[n]! < 200e6, `${Math.round(idle[n]! / 1e6)} MB became ${Math.round(bytes / 1e6)} MB`);
  }
});
