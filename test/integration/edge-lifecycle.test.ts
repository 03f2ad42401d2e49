/** Starting, readiness and stopping of a gateway as a process, as a pod sees them. */
import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { exchange, type Reply } from '../../src/demo/exchange.ts';
import { freePort } from '../../src/demo/free-port.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import { until } from '../../src/demo/until.ts';
import { held, scriptedApplication } from '../support/application.ts';
import { post, startCluster } from '../support/cluster.ts';
import { github, outcome } from '../support/deliveries.ts';
import { startSolo } from '../support/solo.ts';

async function probe(gateway: Gateway, path: string): Promise<number | undefined> {
  return (await exchange(`${gateway.adminUrl}${path}`).catch(() => undefined))?.status;
}

async function becomes(gateway: Gateway, path: string, status: number, withinMs = 5_000): Promise<void> {
  await until(
    systemClock,
    `${path} ${status}`,
    async () => ((await probe(gateway, path)) === status ? true : undefined),
    withinMs,
  );
}

test('B93: after SIGTERM new connections are taken for the drain delay: none is refused, no delivery is lost or doubled', async () => {
  await using application = await scriptedApplication();
  application.otherwise(async () => {
    await systemClock.sleep(300);
    return { status: 200 };
  });
  await using gateway = await startSolo(application.url, { top: { drain: { delay: '2s', grace: '20s' } } });
  const replies: Promise<Reply>[] = [];
  let n = 0;
  const send = (): void => void replies.push(post(gateway, '/github', github(`B93-${(n += 1)}`)));
  // A steady stream, 50 a second, from before the signal to the end of the drain delay.
  const pace = async (ms: number): Promise<void> => {
    for (const end = systemClock.now() + ms; systemClock.now() < end; await systemClock.sleep(20)) send();
  };
  await pace(300);
  gateway.child.signal('SIGTERM');
  await becomes(gateway, '/readyz', 503);
  const before = n;
  await pace(1_200);
  assert.ok(n > before);
  const statuses = (await Promise.all(replies)).map(({ status }) => status);
  assert.deepEqual([...new Set(statuses)], [200]);
  assert.deepEqual(await gateway.child.exited, { code: 0, signal: null });
  assert.equal(application.visits.length, n);
  assert.equal(new Set(application.visits.map(({ key }) => key)).size, n);
});

test('B95: a client that keeps its connection open does not hold up the end', async () => {
  await using application = await scriptedApplication();
  await using gateway = await startSolo(application.url);
  const work = held();
  application.script('B95', work.step);
  const agent = new Agent({ keepAlive: true, keepAliveMsecs: 60_000 });
  const { headers, body } = github('B95');
  const connection = await new Promise<{ closed: Promise<void>; header: string | undefined }>((resolve, reject) => {
    const lines = ['Host', 'g', ...headers, 'Content-Length', `${body.length}`];
    const out = request(`${gateway.url}/github`, { agent, method: 'POST', headers: lines });
    const closed = Promise.withResolvers<void>();
    out.once('socket', (socket) => socket.once('close', closed.resolve));
    out.once('error', reject);
    out.once('response', (reply) => {
      reply.resume().once('end', () => resolve({ closed: closed.promise, header: reply.headers.connection }));
    });
    out.end(body);
    void work.arrived.then(async () => {
      gateway.child.signal('SIGTERM');
      await becomes(gateway, '/readyz', 503);
      work.finish();
    }, reject);
  });
  const answeredMs = systemClock.now();
  assert.equal(connection.header, 'close');
  assert.deepEqual(await gateway.child.exited, { code: 0, signal: null });
  assert.ok(systemClock.now() - answeredMs < 5_000);
  await connection.closed;
  agent.destroy();
});

test('B98: without Redis the gateway lives, is not ready where that is asked for, and recovers by itself', async () => {
  await using cluster = await startCluster({ gateways: 1, settings: { top: { readiness: { requireQuorum: true } } } });
  const [gateway] = cluster.gateways as [Gateway];
  assert.equal(await probe(gateway, '/readyz'), 200);
  for (const node of cluster.nodes) node.freeze();
  let failed = 0;
  await until(
    systemClock,
    'a gateway that is not ready',
    async () => {
      assert.equal(await probe(gateway, '/livez'), 200);
      const reply = await cluster.post(0, '/github', github(`B98-${(failed += 1)}`));
      assert.deepEqual([reply.status, outcome(reply)], [503, 'unavailable']);
      return (await probe(gateway, '/readyz')) === 503 ? true : undefined;
    },
    5_000,
  );
  const said = JSON.parse((await exchange(`${gateway.adminUrl}/readyz`)).body.toString()) as { reason: string };
  assert.equal(said.reason, 'no quorum');
  for (const node of cluster.nodes) node.thaw();
  await becomes(gateway, '/readyz', 200);
  assert.equal((await cluster.post(0, '/github', github('B98-after'))).status, 200);
  assert.equal(cluster.application.visits.length, 1);
  assert.ok(gateway.child.running());
});

test('B99: a gateway starts before Redis and before the application, and works as soon as both are there', async () => {
  await using application = await scriptedApplication();
  await application.down();
  await using cluster = await startCluster({ gateways: 0 });
  for (const node of cluster.nodes) await node.kill();
  // Ready all the same: readiness does not ask for a quorum unless it is told to.
  const gateway = await cluster.gateway({ upstream: { url: application.url } }, 0);
  assert.equal(await probe(gateway, '/livez'), 200);
  const early = await post(gateway, '/github', github('D40'));
  assert.deepEqual([early.status, outcome(early)], [503, 'unavailable']);
  for (const node of cluster.nodes) await node.start();
  await until(systemClock, 'an application that is missed', async () =>
    outcome(await post(gateway, '/github', github('D40'))) === 'unreachable' ? true : undefined,
  );
  await application.up();
  const late = await post(gateway, '/github', github('D40'));
  assert.equal(late.status, 200);
  assert.equal(application.of('D40').length, 1);
});

test('as a sidecar: told to drain while the application still works, ended after it has gone', async () => {
  await using application = await scriptedApplication();
  await using gateway = await startSolo(application.url, { top: { drain: { delay: '1s', grace: '20s' } } });
  const work = held();
  application.script('slow', work.step);
  const slow = post(gateway, '/github', github('slow'));
  await work.arrived;

  assert.equal((await exchange(`${gateway.adminUrl}/-/drain`)).status, 200);
  const drainedMs = systemClock.now();
  assert.equal(await probe(gateway, '/readyz'), 503);
  assert.equal(await probe(gateway, '/livez'), 200);
  assert.equal((await post(gateway, '/github', github('during'))).status, 200);
  work.finish();
  assert.equal((await slow).status, 200);
  await systemClock.sleep(Math.max(0, drainedMs + 1_000 - systemClock.now()));

  // The application has ended. What comes now is for somebody else, and nothing is held for it.
  await application.down();
  const late = await post(gateway, '/github', github('late'));
  assert.deepEqual([late.status, outcome(late)], [502, 'unreachable']);
  const endingMs = systemClock.now();
  assert.deepEqual(await gateway.terminate(), { code: 0, signal: null });
  // The delay is over: it does not begin again with the signal.
  assert.ok(systemClock.now() - endingMs < 5_000);
});

test('what has no end is cut when the grace period is over, and the exit code is 0', async () => {
  await using application = await scriptedApplication();
  await using gateway = await startSolo(application.url, { top: { drain: { delay: '0s', grace: '500ms' } } });
  const work = held();
  application.script('endless', work.step);
  const endless = post(gateway, '/github', github('endless')).catch(() => undefined);
  await work.arrived;
  assert.deepEqual(await gateway.terminate(), { code: 0, signal: null });
  await endless;
  work.finish();
});

test('a port for everything: the gateway takes the place of the application’s own port', async () => {
  await using application = await scriptedApplication();
  const port = await freePort();
  await using gateway = await startSolo(application.url, { top: { listen: { host: '127.0.0.1', port } } });
  const reply = await exchange(`http://127.0.0.1:${port}/api/orders?x=%2F`, { headers: ['Accept', 'text/html'] });
  assert.equal(reply.status, 200);
  assert.equal(application.visits[0]!.target, '/api/orders?x=%2F');
  assert.match(await gateway.metrics(), /^hookonce_deliveries_total\{route="unmatched",outcome="proxied"\} 1$/m);
});
