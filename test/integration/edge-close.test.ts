/** Draining, closing, and clients that are slow or idle. */
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openStream } from '../support/byte-stream.ts';
import { delivered, startEdge, type Edge } from '../support/edge.ts';
import { startProxied } from '../support/proxied.ts';
import { ask, headerOf, openConnection } from '../support/raw-connection.ts';

const POST = 'POST /hook HTTP/1.1\r\nHost: g\r\nContent-Length: 2\r\n\r\n';

/** An edge whose deliveries are answered when the test says so. */
async function heldEdge(): Promise<{ edge: Edge; go: () => void }> {
  const released = Promise.withResolvers<void>();
  const edge = await startEdge(async () => {
    await released.promise;
    return delivered(200);
  });
  return { edge, go: released.resolve };
}

test('before draining connections are kept, while draining every answer closes its own', async () => {
  const edge = await startEdge();
  const connection = await openConnection(edge.port);
  connection.write(`${POST}ok`);
  assert.notEqual(headerOf(await connection.answer(), 'Connection'), 'close');
  edge.server.drain();
  connection.write(`${POST}ok`);
  assert.equal(headerOf(await connection.answer(), 'Connection'), 'close');
  assert.equal(await connection.closed, undefined);

  const fresh = await ask(edge.port, `${POST}ok`);
  assert.equal(fresh.status, 200);
  assert.equal(headerOf(fresh, 'Connection'), 'close');
  await edge.server.close();
});

test('B95: closing ends with the last answer, although clients keep their connections open', async () => {
  const { edge, go } = await heldEdge();
  const untouched = await openConnection(edge.port);
  const used = await openConnection(edge.port);
  used.write('POST /nothing HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n');
  assert.equal((await used.answer()).status, 404);
  const busy = await openConnection(edge.port);
  busy.write(`${POST}ok`);
  await edge.arrived(1);

  let closed = false;
  const closing = edge.server.close().then(() => (closed = true));
  assert.equal(await used.closed, undefined);
  assert.equal(await untouched.closed, undefined);
  assert.equal(closed, false);
  go();
  const answer = await busy.answer();
  assert.equal(answer.status, 200);
  assert.equal(answer.body, 'ok');
  assert.equal(headerOf(answer, 'Connection'), 'close');
  assert.equal(await busy.closed, undefined);
  await closing;
});

test('a connection that was accepted just before closing began, or a request that had begun to come, is served', async () => {
  const headers = ['X-A', '1', 'Set-Cookie', 'a', 'x-b', '2', 'Set-Cookie', 'b'];
  const reply = { status: 200, headers, body: Buffer.from('ok') };
  const edge = await startEdge(() => ({ kind: 'delivered', reply, attempt: 1 }));
  const [fresh, begun, known] = [await openStream(edge.port), await openStream(edge.port), await openStream(edge.port)];
  known.write(`${POST}ok`);
  await known.until(/ok$/);
  for (const stream of [begun, known]) stream.write(POST.slice(0, 30));
  // Another exchange, so that what was sent before it has come.
  await ask(edge.port, `${POST}ok`);
  const closing = edge.server.close();
  fresh.write(`${POST}ok`);
  for (const stream of [begun, known]) stream.write(`${POST.slice(30)}ok`);
  for (const stream of [fresh, begun, known]) {
    const answer = await stream.rest();
    assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
    assert.equal(answer.match(/connection: close/gi)?.length, 1);
    assert.equal(answer.match(/set-cookie: [ab]\r\n/gi)?.length, 2);
  }
  await closing;
});

test('an answer that was on its way when closing began does not keep its connection', async () => {
  const edge = await startEdge();
  const connection = await openConnection(edge.port);
  connection.write(`${POST}ok`);
  await edge.arrived(1);
  const closing = edge.server.close();
  assert.equal((await connection.answer()).status, 200);
  assert.equal(await connection.closed, undefined);
  await closing;
});

test('an answer that a slow client is still reading when closing begins arrives whole', async () => {
  const body = Buffer.alloc(20_000_000, 'x');
  const edge = await startEdge(() => ({ kind: 'delivered', reply: { status: 200, headers: [], body }, attempt: 1 }));
  const { socket, closed } = await openConnection(edge.port);
  socket.removeAllListeners('data').pause();
  socket.write(`${POST}ok`);
  await edge.arrived(1);
  await nextTurn();
  const closing = edge.server.close();
  await nextTurn();
  let read = 0;
  socket.on('data', (chunk: Buffer) => (read += chunk.length)).resume();
  assert.equal(await closed, undefined);
  await closing;
  assert.ok(read > body.length, `${read} bytes`);
});

test('a request whose body is still on its way when closing begins is answered', async () => {
  const edge = await startEdge();
  const connection = await openConnection(edge.port);
  connection.write(POST.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'));
  assert.equal((await connection.answer()).status, 100);
  const closing = edge.server.close();
  connection.write('ok');
  assert.equal((await connection.answer()).status, 200);
  await closing;
});

test('closing does not wait for ever for a body that does not come', async () => {
  const edge = await startEdge(undefined, { receive: { headersMs: 200, bodyMs: 300 } });
  const connection = await openConnection(edge.port);
  connection.write(POST.replace('\r\n\r\n', '\r\nExpect: 100-continue\r\n\r\n'));
  assert.equal((await connection.answer()).status, 100);
  await edge.server.close();
  await connection.closed;
  await nextTurn();
  assert.equal(edge.buffered(), 0);
});

test('closing twice is closing once', async () => {
  const edge = await startEdge();
  await Promise.all([edge.server.close(), edge.server.close()]);
  await edge.server.close();
});

test('after closing connections are refused', async () => {
  const edge = await startEdge();
  await edge.server.close();
  await assert.rejects(openConnection(edge.port), { code: 'ECONNREFUSED' });
});

for (const [name, bytes] of Object.entries({
  'its headers': 'POST /hook HTTP/1.1\r\nHost: g\r\n',
  'its first byte': '',
  'its body': `${POST}o`,
})) {
  test(`a client that is slow with ${name} is told 408 and cut off`, async () => {
    await using edge = await startEdge(undefined, { receive: { headersMs: 200, bodyMs: 300 } });
    const connection = await openConnection(edge.port);
    if (bytes !== '') connection.write(bytes);
    const answer = await connection.answer();
    assert.equal(answer.status, 408);
    assert.equal(headerOf(answer, 'Hookonce-Outcome'), 'rejected');
    await connection.closed;
    assert.equal(edge.received.length, 0);
    assert.equal(edge.buffered(), 0);
  });
}

test('a delivery that is handled for longer than a client may take to send is not cut off', async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  await using edge = await startEdge(
    async ({ body }) => {
      if (body.toString() === 'ok') await promise;
      return delivered(200);
    },
    { receive: { headersMs: 100, bodyMs: 100 } },
  );
  const connection = await openConnection(edge.port);
  connection.write(`${POST}ok`);
  await edge.arrived(1);
  // Another client is cut off for its slowness: by then the limits have been looked at.
  const slow = await openConnection(edge.port);
  slow.write('POST');
  assert.equal((await slow.answer()).status, 408);
  resolve();
  assert.equal((await connection.answer()).status, 200);
  connection.socket.destroy();
});

test('closing lets an upload to the application end, and its answer', async () => {
  const there = Promise.withResolvers<void>();
  await using proxied = await startProxied((req, res) => {
    there.resolve();
    void buffer(req).then((body) => res.end(`${body.length}`));
  });
  const client = await openConnection(proxied.port);
  client.write('POST /upload HTTP/1.1\r\nHost: g\r\nContent-Length: 4\r\n\r\nab');
  await there.promise;
  const closing = proxied.edge.server.close();
  client.write('cd');
  const answer = await client.answer();
  assert.deepEqual([answer.body, headerOf(answer, 'Connection')], ['4', 'close']);
  assert.equal(await client.closed, undefined);
  await closing;
});

test('closing cuts what has no end of its own, streams of events and upgraded connections, after the last answer', async () => {
  const held = Promise.withResolvers<ServerResponse>();
  await using proxied = await startProxied((req, res) => {
    if (req.url === '/held') return held.resolve(res);
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write('data: 1\n\n');
  });
  proxied.application.on('upgrade', (_req, socket) => {
    socket.on('error', () => {});
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  });
  using events = await openStream(proxied.port);
  events.write('GET /events HTTP/1.1\r\nHost: g\r\n\r\n');
  await events.until(/data: 1/);
  using tunnel = await openStream(proxied.port);
  tunnel.write('GET /ws HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n');
  await tunnel.until(/101 /);
  const client = await openConnection(proxied.port);
  client.write('GET /held HTTP/1.1\r\nHost: g\r\n\r\n');
  const answer = await held.promise;
  const closing = proxied.edge.server.close();
  await nextTurn();
  assert.equal(proxied.edge.inFlight(), 3);
  answer.writeHead(200, ['Content-Length', '2']).end('ok');
  assert.equal((await client.answer()).body, 'ok');
  await Promise.all([closing, events.rest(), tunnel.rest()]);
  await proxied.edge.passed(3);
  assert.equal(proxied.edge.inFlight(), 0);
});
