/** The admin port, asked by a real client. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAdmin, type AdminServer } from '../../src/http/admin.ts';
import { openConnection } from '../support/raw-connection.ts';

async function start(): Promise<{
  admin: AdminServer;
  state: { ready: boolean; reason?: string };
  drains: () => number;
}> {
  const state: { ready: boolean; reason?: string } = { ready: false, reason: 'starting' };
  let drains = 0;
  const admin = await createAdmin({
    host: '127.0.0.1',
    port: 0,
    ready: () => state,
    drain: () => void (drains += 1),
    metrics: { contentType: 'text/plain; version=0.0.4', metrics: async () => 'up 1\n' },
  });
  return { admin, state, drains: () => drains };
}

async function ask(
  admin: AdminServer,
  path: string,
  init: RequestInit = {},
): Promise<{ status: number; text: string; type: string | null }> {
  const response = await fetch(`http://127.0.0.1:${admin.port}${path}`, init);
  return { status: response.status, text: await response.text(), type: response.headers.get('content-type') };
}

test('livez says that the process runs, readyz whether deliveries are wanted', async () => {
  const { admin, state } = await start();
  await using _ = admin;
  assert.equal((await ask(admin, '/livez')).status, 200);
  const before = await ask(admin, '/readyz');
  assert.equal(before.status, 503);
  assert.deepEqual(JSON.parse(before.text), { ready: false, reason: 'starting' });
  state.ready = true;
  delete state.reason;
  const after = await ask(admin, '/readyz');
  assert.equal(after.status, 200);
  assert.deepEqual(JSON.parse(after.text), { ready: true });
  assert.equal((await ask(admin, '/readyz', { method: 'HEAD' })).status, 200);
});

test('drain is started by GET and POST, with any body, and answers at once', async () => {
  const { admin, drains } = await start();
  await using _ = admin;
  assert.equal((await ask(admin, '/-/drain')).status, 200);
  assert.equal((await ask(admin, '/-/drain', { method: 'POST' })).status, 200);
  assert.equal(
    (await ask(admin, '/-/drain', { method: 'POST', body: 'x', headers: { 'Content-Type': 'odd' } })).status,
    200,
  );
  assert.equal(drains(), 3);
});

test('metrics have the content type of their format', async () => {
  const { admin } = await start();
  await using _ = admin;
  assert.deepEqual(await ask(admin, '/metrics'), { status: 200, text: 'up 1\n', type: 'text/plain; version=0.0.4' });
});

test('there is nothing else', async () => {
  const { admin, drains } = await start();
  await using _ = admin;
  assert.equal((await ask(admin, '/')).status, 404);
  assert.equal((await ask(admin, '/-/drain', { method: 'PUT' })).status, 404);
  assert.equal(drains(), 0);
});

test('closing does not wait for clients that keep their connections', async () => {
  const { admin } = await start();
  const connection = await openConnection(admin.port);
  await admin[Symbol.asyncDispose]();
  await connection.closed;
});
