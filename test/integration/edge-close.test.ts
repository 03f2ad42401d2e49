/** Draining, closing, and clients that are slow or idle. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { delivered, startEdge, type Edge } from '../support/edge.ts';
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
  const edge = await startEdge(undefined, { receive: { headersMs: 200, requestMs: 300 } });
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
    await using edge = await startEdge(undefined, { receive: { headersMs: 200, requestMs: 300 } });
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
    { receive: { headersMs: 100, requestMs: 100 } },
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
