/** The gateway under the memory limit of a small container, with more at once than fits. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rmSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { stringify } from 'yaml';
import { systemClock } from '../../src/clock.ts';
import { exchange, type Reply } from '../../src/demo/exchange.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { until } from '../../src/demo/until.ts';
import { confined, type Confined } from '../chart/confined.ts';
import { builtImage, command, environment } from '../chart/image.ts';
import { answer, scriptedApplication } from '../support/application.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import { github, outcome, retryAfter } from '../support/deliveries.ts';
import { sum } from '../support/metrics.ts';

const MiB = 1024 ** 2;
const LIMIT = 128 * MiB;
/** As many as are passed through under this limit, by default. */
const STREAMS = 128;

let folder = '';
before(async () => void (folder = await builtImage()));
after(() => rmSync(folder, { recursive: true }));

interface Contained extends Confined {
  readonly url: string;
  readonly port: number;
  metrics(): Promise<string>;
}

async function serving(applicationUrl: string): Promise<Contained> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const ports = { listen: { host: '127.0.0.1', port }, admin: { host: '127.0.0.1', port: adminPort } };
  mkdirSync(join(folder, 'etc'), { recursive: true });
  const config = stringify({ ...gatewayConfig(applicationUrl, []), ...ports });
  for (const [name, text] of Object.entries({ ...secretFiles, 'config.yaml': config }))
    writeFileSync(join(folder, 'etc', name), text);
  const env = { ...environment, HOOKONCE_CONFIG: join(folder, 'etc/config.yaml') };
  await using stack = new AsyncDisposableStack();
  const gateway = stack.use(confined(command, LIMIT, { cwd: join(folder, 'app'), env }));
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  await until(systemClock, 'a gateway that is ready', async () => {
    if (!gateway.child.running()) throw new Error(gateway.child.lines.join('\n'));
    return (await exchange(`${adminUrl}/readyz`)).status === 200 ? true : undefined;
  });
  stack.move();
  const metrics = async (): Promise<string> => (await exchange(`${adminUrl}/metrics`)).body.toString();
  return { ...gateway, url: `http://127.0.0.1:${port}`, port, metrics };
}

function assertAlive(gateway: Contained): void {
  assert.ok(gateway.child.running(), gateway.child.lines.slice(-20).join('\n'));
  const peak = gateway.peak();
  assert.ok(peak < LIMIT, `${peak} bytes`);
}

test('B100: 400 deliveries of 1 MiB at once, answered with 1 MiB each, under 128 MiB: none is lost, and nothing is killed', async () => {
  await using application = await scriptedApplication();
  await using gateway = await serving(application.url);
  const body = Buffer.alloc(MiB, 'x');
  const ids = Array.from({ length: 400 }, (_, i) => `B100-${i}`);
  const deliver = async (id: string): Promise<Reply> =>
    await exchange(`${gateway.url}/github`, { method: 'POST', ...github(id, body) });

  const go = Promise.withResolvers<void>();
  application.otherwise(async () => {
    await go.promise;
    return { status: 200, body };
  });
  const refused: string[] = [];
  const first = ids.map(async (id) => {
    const reply = await deliver(id);
    if (reply.status === 200) return;
    assert.deepEqual([reply.status, outcome(reply)], [503, 'overloaded']);
    assert.ok(retryAfter(reply) >= 1);
    refused.push(id);
  });
  await until(systemClock, 'all that do not fit to be refused', () =>
    refused.length + application.visits.length >= ids.length ? true : undefined,
  );
  assert.ok(refused.length > 300, `${refused.length}`);
  go.resolve();
  await Promise.all(first);

  application.otherwise(answer(200));
  for (let left = refused; left.length > 0;) {
    const again: string[] = [];
    const queue = left.values();
    const lane = async (): Promise<void> => {
      for (const id of queue) if ((await deliver(id)).status !== 200) again.push(id);
    };
    await Promise.all(Array.from({ length: 8 }, lane));
    left = again;
  }
  assert.deepEqual([...new Set(ids.map((id) => application.of(id).length))], [1]);
  const large = await exchange(`${gateway.url}/github`, { method: 'POST', ...github('large', Buffer.alloc(MiB + 1)) });
  assert.equal(large.status, 413);
  assert.equal(application.of('large').length, 0);
  assert.equal(sum([await gateway.metrics()], 'hookonce_buffered_bytes'), 0);
  assertAlive(gateway);
});

test('as many downloads and uploads as are passed through, all of them stalled, under 128 MiB', async () => {
  const chunk = Buffer.alloc(4 * MiB, 'x');
  const application = createServer((req, res) => {
    if (req.method === 'GET') res.write(chunk);
    else req.pause();
  });
  await once(application.listen(0, '127.0.0.1'), 'listening');
  await using gateway = await serving(`http://127.0.0.1:${(application.address() as AddressInfo).port}`);
  await using stack = new AsyncDisposableStack();
  stack.defer(() => application.close().closeAllConnections());
  const clients: Socket[] = [];
  stack.defer(() => clients.forEach((client) => client.destroy()));
  for (let i = 0; i < STREAMS; i += 1) {
    const client = connect(gateway.port, '127.0.0.1').on('error', () => {});
    client.pause();
    clients.push(client);
    client.write(
      i % 2 === 0
        ? 'GET /x HTTP/1.1\r\nHost: g\r\n\r\n'
        : `POST /x HTTP/1.1\r\nHost: g\r\nContent-Length: ${chunk.length}\r\n\r\n`,
    );
    if (i % 2 === 1) client.write(chunk);
  }
  await until(systemClock, 'everything to be under way', async () =>
    sum([await gateway.metrics()], 'hookonce_in_flight', { route: 'unmatched' }) === STREAMS ? true : undefined,
  );
  // No event tells that nothing more comes: the memory has stopped growing.
  let peak = 0;
  await until(systemClock, 'the flow to stop', async () => {
    await systemClock.sleep(500);
    const before = peak;
    peak = gateway.peak();
    return peak === before ? true : undefined;
  });
  const more = await exchange(`${gateway.url}/y`);
  assert.deepEqual([more.status, retryAfter(more)], [503, 1]);
  for (const client of clients) client.destroy();
  // Of an upload that it does not read the application would not see the end either.
  application.closeAllConnections();
  await until(systemClock, 'everything to have ended', async () =>
    sum([await gateway.metrics()], 'hookonce_in_flight', { route: 'unmatched' }) === 0 ? true : undefined,
  );
  assertAlive(gateway);
});
