/** The admin port, asked by a real client. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Route } from '../../src/core/route.ts';
import { createAdmin, type AdminServer } from '../../src/http/admin.ts';
import { senders } from '../../src/senders/index.ts';
import { openConnection } from '../support/raw-connection.ts';

const github = {
  name: 'github',
  identity: senders.get('github')!.identity,
  retentionMs: 1,
  onUnavailable: 'reject',
} as Route;

async function start(token?: string): Promise<{
  admin: AdminServer;
  state: { ready: boolean; reason?: string };
  drains: () => number;
  forgot: unknown[][];
}> {
  const state: { ready: boolean; reason?: string } = { ready: false, reason: 'starting' };
  let drains = 0;
  const forgot: unknown[][] = [];
  const admin = await createAdmin({
    host: '127.0.0.1',
    port: 0,
    ready: () => state,
    drain: () => void (drains += 1),
    metrics: { contentType: 'text/plain; version=0.0.4', metrics: async () => 'up 1\n' },
    operate: {
      ...{ service: 's', routes: () => [github], token: () => token, events: { warn: () => {} } },
      recent: () => [],
      operator: {
        explain: async () => ({ voters: [], forecast: { kind: 'unavailable' } }),
        forget: async (...args) => {
          forgot.push(args);
          return { kind: 'forgotten', attempt: 1, running: false };
        },
      },
    },
  });
  return { admin, state, drains: () => drains, forgot };
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

test('what tells of events, or changes them, needs the token; without one it is off', async () => {
  const { admin: off, forgot: never } = await start();
  await using _off = off;
  const { admin, forgot } = await start('t0ken');
  await using _ = admin;
  const as = (authorization: string, method = 'GET') => ({ method, headers: { authorization } });
  const paths = ['/-/explain/github?id=1', '/-/forget/github?id=1', '/-/forget/none?id=1', '/-/explain/github'];
  for (const [index, path] of paths.entries()) {
    const method = path.includes('forget') ? 'POST' : 'GET';
    assert.equal((await ask(off, path, as('Bearer t0ken', method))).status, 403, path);
    assert.equal((await ask(off, path, as('Bearer undefined', method))).status, 403, path);
    for (const wrong of ['', 'Bearer', 'Bearer t0kem', 'Bearer t0kenn', 'Basic t0ken', 't0ken'])
      assert.equal((await ask(admin, path, as(wrong, method))).status, 401, `${path} as ${wrong}`);
    assert.deepEqual((await ask(admin, path, as('bearer t0ken', method))).status, [200, 200, 404, 400][index], path);
  }
  assert.equal(never.length, 0);
  assert.equal(forgot.length, 1);
  assert.deepEqual(forgot[0]!.slice(1), [1, false], 'the retention of the route, and no force');
  await ask(admin, '/-/forget/github?id=1&force=true', as('Bearer t0ken', 'POST'));
  assert.equal(forgot[1]![2], true);
  assert.equal((await ask(admin, '/-/forget/github?id=1', as('Bearer t0ken'))).status, 404, 'a GET changes nothing');
  assert.equal((await ask(off, '/-/drain')).status, 200, 'the kubelet has no token');
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
