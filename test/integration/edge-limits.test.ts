/** Limits on what deliveries may hold and how many there may be, on real sockets. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Outcome } from '../../src/core/delivery.ts';
import { createMemory } from '../../src/core/memory.ts';
import { delivered, route, startEdge, type Edge } from '../support/edge.ts';
import { ask, headerOf, openConnection, type RawConnection } from '../support/raw-connection.ts';

const post = (length: number, path = '/hook'): string =>
  `POST ${path} HTTP/1.1\r\nHost: g\r\nContent-Length: ${length}\r\n\r\n${'x'.repeat(length)}`;

/** An edge whose deliveries are answered when the test says so. */
async function heldEdge(change: Parameters<typeof startEdge>[1]): Promise<{ edge: Edge; go: () => void }> {
  const released = Promise.withResolvers<void>();
  const edge = await startEdge(async () => {
    await released.promise;
    return delivered(200);
  }, change);
  return { edge, go: released.resolve };
}

async function send(edge: Edge, bytes: string): Promise<RawConnection> {
  const connection = await openConnection(edge.port);
  connection.write(bytes);
  return connection;
}

test('deliveries above the limit for all are 503 with Retry-After, whatever their body; then there is room again', async () => {
  const { edge, go } = await heldEdge({ limits: { body: 1_000, headers: 16_384, inFlight: 2 } });
  await using _ = edge;
  const first = [await send(edge, post(0)), await send(edge, post(0))];
  await edge.arrived(2);
  const refused = await ask(edge.port, post(10));
  assert.deepEqual(
    [refused.status, headerOf(refused, 'Hookonce-Outcome'), headerOf(refused, 'Retry-After')],
    [503, 'overloaded', '1'],
  );
  assert.equal(edge.reports[0]!.reason, 'in_flight');
  go();
  for (const connection of first) assert.equal((await connection.answer()).status, 200);
  assert.equal((await ask(edge.port, post(0))).status, 200);
  for (const { socket } of first) socket.destroy();
});

test('a route’s own limits are its alone', async () => {
  const routes = [
    route('hook', '/hook', { limits: { inFlight: 1, bodyBytes: 5 } }),
    route('large', '/large', { limits: { bodyBytes: 2_000 } }),
    route('usual', '/usual'),
  ];
  const { edge, go } = await heldEdge({ routes });
  await using _ = edge;
  const first = await send(edge, post(5));
  await edge.arrived(1);
  assert.equal((await ask(edge.port, post(0))).status, 503);
  const others = [await send(edge, post(2_000, '/large')), await send(edge, post(0, '/usual'))];
  await edge.arrived(3);
  go();
  for (const connection of [first, ...others]) assert.equal((await connection.answer()).status, 200);
  for (const { socket } of [first, ...others]) socket.destroy();
  assert.equal((await ask(edge.port, post(6))).status, 413);
  assert.equal((await ask(edge.port, post(2_001, '/large'))).status, 413);
  assert.equal((await ask(edge.port, post(1_001, '/usual'))).status, 413);
});

test('the answer is held until the client has taken it', async () => {
  const reply = Buffer.alloc(20_000_000, 'x');
  const handle = async (received: { share?: { take(bytes: number): boolean } | undefined }): Promise<Outcome> => {
    received.share!.take(reply.length);
    return { kind: 'delivered', reply: { status: 200, headers: [], body: reply }, attempt: 1 };
  };
  let held = 0;
  await using edge = await startEdge(handle, { memory: createMemory(30_000_000, (bytes) => (held = bytes)) });
  const { socket } = await openConnection(edge.port);
  socket.removeAllListeners('data').pause();
  socket.write(post(2));
  await edge.arrived(1);
  for (let i = 0; i < 20; i += 1) await ask(edge.port, 'GET / HTTP/1.1\r\nHost: g\r\n\r\n');
  assert.equal(held, reply.length + 2);
  socket.on('data', () => {}).resume();
  for (let i = 0; i < 1_000 && held > 0; i += 1) await ask(edge.port, 'GET / HTTP/1.1\r\nHost: g\r\n\r\n');
  assert.equal(held, 0);
  socket.destroy();
});

test('a limit of one’s own for the head of a request', async () => {
  await using edge = await startEdge(undefined, { limits: { body: 1_000, headers: 40_000, inFlight: 10 } });
  const head = (bytes: number): string => post(0).replace('Host', `X: ${'x'.repeat(bytes)}\r\nHost`);
  assert.equal((await ask(edge.port, head(30_000))).status, 200);
  assert.equal((await ask(edge.port, head(40_001))).status, 431);
});
