/** Two gateways behind a balancer, replaced in turn under traffic of all kinds: 20 seconds, 10 minutes in the long suites. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { exchange, type Message, type Reply } from '../../src/demo/exchange.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { until } from '../../src/demo/until.ts';
import { startBalancer } from '../support/balancer.ts';
import { startCluster, votersUp } from '../support/cluster.ts';
import { github } from '../support/deliveries.ts';
import { sum } from '../support/metrics.ts';

const FULL = process.env['HOOKONCE_TEST_FULL'] === '1';
const TRAFFIC_MS = FULL ? 600_000 : 20_000;
const patience = { retryAfterScale: 0.2, maxTries: 60 };
const upload = Buffer.alloc(300_000, 'u');

/** A client that keeps its connections and says what its agent does. */
function kept(agent: Agent, url: string, { headers = [], body }: Message): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const lines = ['Host', 'g', ...headers, 'Content-Length', `${body!.length}`];
    const out = request(url, { agent, method: 'POST', headers: lines });
    out.once('error', reject);
    out.once('response', (reply) => {
      buffer(reply).then(
        (whole) => resolve({ status: reply.statusCode!, headers: reply.rawHeaders, body: whole }),
        reject,
      );
    });
    out.end(body);
  });
}

interface Weight {
  readonly descriptors: number;
  readonly residentMiB: number;
}

function weigh({ child: { pid } }: Gateway): Weight {
  const rss = Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]);
  return { descriptors: readdirSync(`/proc/${pid}/fd`).length, residentMiB: rss / 1024 };
}

test('gateways are replaced one after the other under traffic: nothing is lost, doubled or refused, nothing piles up', async () => {
  await using cluster = await startCluster({ settings: { top: { drain: { delay: '1s', grace: '20s' } } } });
  const { application, gateways } = cluster;
  application.otherwise(async (visit) => {
    await systemClock.sleep(visit.key === '' ? 5 : 20);
    return { status: 200, body: `${visit.body.length}` };
  });
  await using balancer = await startBalancer(gateways);
  await using agent = Object.assign(new Agent({ keepAlive: true }), {
    [Symbol.asyncDispose]: async () => agent.destroy(),
  });

  const endMs = systemClock.now() + TRAFFIC_MS;
  let replaced = 0;
  const under = (): boolean => systemClock.now() < endMs || replaced < 2;
  const ids: string[] = [];
  const lost: string[] = [];
  /** Each event in two copies at the same time, from senders that try again; one of them keeps its connections. */
  const sender = async (lane: number): Promise<void> => {
    for (let i = 0; under(); i += 1) {
      const id = `${lane}-${i}`;
      const signed = github(id);
      ids.push(id);
      const copies = await Promise.all([
        deliverUntilDone(
          systemClock,
          async () => await exchange(`${balancer.url}/github`, { method: 'POST', ...signed }),
          patience,
        ),
        deliverUntilDone(systemClock, async () => await kept(agent, `${balancer.url}/github`, signed), patience),
      ]);
      if (!copies.every(({ ok }) => ok)) lost.push(id);
    }
  };
  const broken: string[] = [];
  let passed = 0;
  /** Requests on no route, on connections of their own: what the application answers is what the client gets. */
  const visitor = async (): Promise<void> => {
    while (under()) {
      passed += 1;
      const message = passed % 5 === 0 ? { method: 'POST', body: upload } : {};
      const expected = `${message.body?.length ?? 0}`;
      const got = await exchange(`${balancer.url}/page`, message).then(
        ({ status, body }) => `${status} ${body.toString()}`,
        (error: unknown) => String(error),
      );
      if (got !== `200 ${expected}`) broken.push(got);
      await systemClock.sleep(10);
    }
  };
  const traffic = [...[0, 1, 2, 3].map(sender), visitor(), visitor()];

  // On a slow machine it takes as long as it takes.
  while (systemClock.now() < endMs - 6_000 || replaced < 2) {
    const gateway = gateways[replaced % 2]!;
    assert.deepEqual(await gateway.terminate(), { code: 0, signal: null });
    await gateway.restart();
    await votersUp(gateway, 3);
    await until(systemClock, 'a balancer that knows it', () => (balancer.ready.has(gateway) ? true : undefined));
    replaced += 1;
  }
  await Promise.all(traffic);
  assert.equal(balancer.refused(), 0);
  assert.deepEqual(lost, []);
  assert.deepEqual(broken, []);
  const attempts = new Map<string, number[]>();
  for (const { headers, attempt } of application.visits) {
    const id = header(headers, 'x-github-delivery');
    if (id !== undefined) attempts.set(id, [...(attempts.get(id) ?? []), attempt]);
  }
  const wrong = ids.map((id) => [id, ...(attempts.get(id) ?? [])]).filter(({ length }) => length !== 2);
  assert.deepEqual(wrong, [], 'every event reached the application exactly once');

  // With the traffic gone everything is given back; a gateway that has seen none tells how much there is by itself.
  agent.destroy();
  const fresh = await cluster.gateway();
  const idle = weigh(fresh);
  for (const gateway of gateways) {
    await until(systemClock, 'descriptors back to what there is by itself', () =>
      weigh(gateway).descriptors <= idle.descriptors ? true : undefined,
    );
    const page = [await gateway.metrics()];
    for (const name of [
      'hookonce_in_flight',
      'hookonce_buffered_bytes',
      'hookonce_completions_pending',
      'hookonce_queue_depth',
      'hookonce_waiting',
    ])
      assert.equal(sum(page, name), 0, name);
    const { residentMiB } = weigh(gateway);
    assert.ok(residentMiB < idle.residentMiB + 80, `${residentMiB} MiB, ${idle.residentMiB} MiB without traffic`);
  }
});
