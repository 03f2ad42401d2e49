/** Connections that change their protocol on the way through. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import { openStream } from '../support/byte-stream.ts';
import type { Edge } from '../support/edge.ts';
import { proxyingEdge } from '../support/proxied.ts';
import { ask } from '../support/raw-connection.ts';

const KEY = ['Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='];
const upgrade = (target: string, protocol = 'websocket', ...lines: string[]): string =>
  [
    `GET ${target} HTTP/1.1`,
    'Host: app.example',
    'Connection: keep-alive, Upgrade',
    `Upgrade: ${protocol}`,
    ...KEY,
    ...lines,
    '',
    '',
  ].join('\r\n');
const SWITCHED =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nconnection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n';

interface Rig extends AsyncDisposable {
  readonly edge: Edge;
  /** Everything that reached the application, one text per connection. */
  readonly came: string[];
}

/** An application that looks at bytes: `serve` is told what came with the first of them. */
async function start(serve: (socket: Socket, came: string) => void): Promise<Rig> {
  const came: string[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const index = came.push('') - 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk: Buffer) => {
      const before = came[index]!;
      const now = before + chunk.toString('latin1');
      came[index] = now;
      if (!before.includes('\r\n\r\n') && now.includes('\r\n\r\n')) serve(socket, now);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const edge = await proxyingEdge({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  return {
    edge,
    came,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await edge.server.close();
    },
  };
}

/** Switches, and sends back what comes then, in capitals. */
function echo(socket: Socket): void {
  socket.removeAllListeners('data');
  socket.on('data', (chunk: Buffer) => socket.write(chunk.toString().toUpperCase()));
  socket.write(`${SWITCHED}hello `);
}

test('a WebSocket goes through: the switch as it is, then bytes both ways', async () => {
  await using rig = await start(echo);
  using client = await openStream(rig.edge.port);
  client.write(upgrade('/ws?a=%2F'));
  const head = await client.until(/hello /);
  assert.equal(head, `${SWITCHED}hello `);
  assert.deepEqual(rig.came[0]!.split('\r\n').slice(0, -2), [
    ...['GET /ws?a=%2F HTTP/1.1', 'Host: app.example', ...KEY],
    ...['X-Forwarded-For: 127.0.0.1', 'X-Forwarded-Proto: http', 'Connection: Upgrade', 'Upgrade: websocket'],
  ]);
  client.write('one ');
  await client.until(/ONE /);
  client.write('two ');
  await client.until(/TWO /);
  assert.equal(rig.edge.inFlight(), 1);
  client.socket.end();
  await client.rest();
  const report = await rig.edge.passed(1);
  assert.deepEqual([report.outcome, report.status], ['proxied', 101]);
  assert.equal(rig.edge.reports.length, 0);
});

test('bytes that come right behind the request are the tunnel’s, after the switch', async () => {
  await using rig = await start(echo);
  using client = await openStream(rig.edge.port);
  client.write(`${upgrade('/ws')}early `);
  assert.match(await client.until(/EARLY /), /\r\n\r\nhello EARLY $/);
});

test('an application that does not switch is heard, and the connection ends: nothing more gets through on it', async () => {
  await using rig = await start(
    (socket) => void socket.write('HTTP/1.1 426 Upgrade Required\r\nX-Why: version\r\nContent-Length: 2\r\n\r\nno'),
  );
  using client = await openStream(rig.edge.port);
  client.write(`${upgrade('/ws')}POST /hook HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`);
  assert.match(
    await client.rest(),
    /^HTTP\/1\.1 426 Upgrade Required\r\nX-Why: version\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno$/,
  );
  assert.equal(rig.came.length, 1);
  assert.doesNotMatch(rig.came[0]!, /POST/);
  const report = await rig.edge.passed(1);
  assert.deepEqual([report.outcome, report.status], ['proxied', 426]);
});

for (const protocol of ['h2c', 'H2C', 'HTTP/2.0', 'TLS/1.0, HTTP/1.1', 'websocket, h2c']) {
  test(`${protocol} carries requests past the routes: the connection stays what it is`, async () => {
    await using rig = await start((socket) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'));
    using client = await openStream(rig.edge.port);
    client.write(upgrade('/ws', protocol));
    await client.until(/^HTTP\/1\.1 200 OK\r\n[^]*ok/);
    assert.doesNotMatch(rig.came[0]!, /upgrade/i);
    client.write('POST /hook HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n');
    await client.until(/^HTTP\/1\.1 200 OK\r\n[^]*ok/);
    assert.equal(rig.edge.received.length, 1);
    assert.doesNotMatch(rig.came.join(), /POST/);
  });
}

test('an application that is down, or breaks off, is 502', async () => {
  const rig = await start((socket) => void socket.destroy());
  using broken = await openStream(rig.edge.port);
  broken.write(upgrade('/ws'));
  assert.match(await broken.rest(), /^HTTP\/1\.1 502 [^]*Hookonce-Outcome: uncertain/);
  await rig[Symbol.asyncDispose]();

  await using edge = await proxyingEdge({});
  using refused = await openStream(edge.port);
  refused.write(upgrade('/ws'));
  assert.match(await refused.rest(), /^HTTP\/1\.1 502 [^]*Hookonce-Outcome: unreachable/);
  assert.equal((await edge.passed(1)).outcome, 'unreachable');
});

test('B86: a client that resets its upgrade at any time harms nobody', async () => {
  await using rig = await start(echo);
  for (const wait of [false, true]) {
    const client = await openStream(rig.edge.port);
    client.write(upgrade('/ws'));
    if (wait) await client.until(/hello /);
    client.socket.resetAndDestroy();
  }
  await rig.edge.passed(2);
  assert.equal(rig.edge.inFlight(), 0);
  assert.equal((await ask(rig.edge.port, 'POST /hook HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n')).status, 200);
});

test('an application that ends its side ends the tunnel', async () => {
  await using rig = await start((socket) => void socket.end(`${SWITCHED}bye`));
  using client = await openStream(rig.edge.port);
  client.write(upgrade('/ws'));
  assert.match(await client.rest(), /bye$/);
  await rig.edge.passed(1);
});

test('upgraded connections count in what is passed through at the same time', async () => {
  const application = await start(echo);
  await using edge = await proxyingEdge({ url: 'http://127.0.0.1:1', maxProxied: 0 });
  using client = await openStream(edge.port);
  client.write(upgrade('/ws'));
  assert.match(await client.rest(), /^HTTP\/1\.1 503 [^]*Retry-After: 1\r\n/);
  await application[Symbol.asyncDispose]();
});
