/** Dead letters as an operator has them: on the command line and on the admin port. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held } from '../support/application.ts';
import { drained, startAsyncCluster, type AsyncCluster, type AsyncOptions } from '../support/async.ts';
import { commandLine } from '../support/command-line.ts';
import { secrets } from '../support/config.ts';
import { custom, github } from '../support/deliveries.ts';

const patient = { redis: { timeout: '1s' }, claims: { budget: '3s', lockTtl: '30s' } };
const admin = { token: { file: './admin.secret' } };

/** Events that have died, `failing-0`, `failing-1`…, and an application that is well again. */
async function withDead(count: number, more: AsyncOptions = {}): Promise<AsyncCluster> {
  await using starting = new AsyncDisposableStack();
  const cluster = starting.use(
    await startAsyncCluster({
      ...{ nodes: 1, gateways: 1 },
      queue: { attempts: 1 },
      settings: { admin, ...patient },
      ...more,
    }),
  );
  cluster.application.otherwise(answer(500));
  for (let n = 0; n < count; n += 1)
    assert.equal((await cluster.post(0, '/github', github(`failing-${n}`, `{"n":${n}}`))).status, 202);
  await dead(cluster, count);
  cluster.application.otherwise(answer(200));
  starting.move();
  return cluster;
}

async function dead(cluster: AsyncCluster, count: number): Promise<void> {
  await until(clock, `${count} dead letters`, async () => ((await cluster.depth('dead')) === count ? true : undefined));
}

async function ask(cluster: AsyncCluster, method: string, path: string, token: string | undefined = secrets.admin) {
  const headers = token === undefined ? [] : ['Authorization', `Bearer ${token}`];
  const { status, body } = await exchange(cluster.gateways[0]!.adminUrl + path, { method, headers });
  const text = body.toString();
  return { status, bytes: body, body: (/^[[{]/.test(text) ? JSON.parse(text) : {}) as Record<string, unknown> };
}

const idsIn = ({ body }: { body: Record<string, unknown> }): string[] =>
  (body['letters'] as { id: string }[]).map(({ id }) => id);

test('on the admin port: listed, shown, its bytes, replayed and discarded, one by one and by filter', async () => {
  await using cluster = await withDead(4);
  for (const [method, path] of [
    ['GET', '/-/dlq'],
    ['GET', '/-/dlq/one'],
    ['GET', '/-/dlq/one/body'],
    ['POST', '/-/dlq/one/replay'],
    ['POST', '/-/dlq/one/discard'],
    ['POST', '/-/dlq/replay?all=true'],
    ['POST', '/-/dlq/discard?all=true'],
  ] as const)
    assert.equal((await ask(cluster, method, path, 'wrong')).status, 401, `${method} ${path}`);

  const all = await ask(cluster, 'GET', '/-/dlq');
  const ids = idsIn(all);
  assert.deepEqual([ids.length, all.body['total'], all.body['more']], [4, 4, false]);
  const page = await ask(cluster, 'GET', `/-/dlq?limit=2&after=${ids[0]}`);
  assert.deepEqual([idsIn(page), page.body['more']], [ids.slice(1, 3), true]);
  assert.deepEqual(idsIn(await ask(cluster, 'GET', '/-/dlq?route=stripe')), []);
  assert.deepEqual(idsIn(await ask(cluster, 'GET', '/-/dlq?status=500&route=github')), ids);
  for (const wrong of ['?statuss=500', '?status=5xx', '?limit=0'])
    assert.equal((await ask(cluster, 'GET', `/-/dlq${wrong}`)).status, 400, wrong);

  const shown = await ask(cluster, 'GET', `/-/dlq/${ids[0]}`);
  const { route, method, target, attempts, lastError, lastStatus, bytes } = shown.body;
  assert.deepEqual(
    [route, method, target, attempts, lastError, lastStatus, bytes],
    ['github', 'POST', '/github', 1, 'answered 500', 500, 7],
  );
  assert.deepEqual((await ask(cluster, 'GET', `/-/dlq/${ids[0]}/body`)).bytes.toString(), '{"n":0}');
  assert.equal((await ask(cluster, 'GET', '/-/dlq/never-there')).status, 404);

  assert.deepEqual((await ask(cluster, 'POST', `/-/dlq/${ids[0]}/replay`)).status, 202);
  await until(clock, 'the replay', async () => (cluster.application.visits.length === 5 ? true : undefined));
  await drained(cluster);
  assert.deepEqual((await ask(cluster, 'POST', `/-/dlq/${ids[0]}/replay`)).status, 404);
  assert.deepEqual((await ask(cluster, 'POST', `/-/dlq/${ids[1]}/discard`)).body['result'], 'discarded');
  assert.equal((await ask(cluster, 'POST', '/-/dlq/replay')).status, 400, 'not all by accident');
  assert.equal((await ask(cluster, 'POST', '/-/dlq/replay?rout=github')).status, 400);
  const none = await ask(cluster, 'POST', '/-/dlq/replay?route=stripe');
  assert.deepEqual([none.body['replayed'], none.body['skipped']], [0, 2]);
  assert.equal((await ask(cluster, 'POST', '/-/dlq/replay?route=github')).body['replayed'], 2);
  await dead(cluster, 0);
  await drained(cluster);
  assert.equal(cluster.application.visits.length, 7);
  assert.deepEqual(idsIn(await ask(cluster, 'GET', '/-/dlq')), []);
});

test('done meanwhile: a replay says so and does nothing; forced, it is forwarded once more, and once only', async () => {
  await using cluster = await startAsyncCluster({
    ...{ nodes: 1, gateways: 2 },
    queue: { attempts: 1 },
    settings: { admin, upstream: { timeout: '500ms' }, claims: { unknownHold: '1s' } },
  });
  // It answers after it has been given up: the work is done, and the letter is dead.
  const work = held();
  cluster.application.script('evt_1', work.step);
  await cluster.post(0, '/custom/x', custom('{"id":"evt_1"}'));
  await work.arrived;
  await dead(cluster, 1);
  work.finish();
  const [id] = idsIn(await ask(cluster, 'GET', '/-/dlq'));
  const refused = await until(clock, 'the late answer', async () => {
    const said = await ask(cluster, 'POST', `/-/dlq/${id}/replay`);
    return said.status === 409 ? said : undefined;
  });
  assert.equal(refused.body['result'], 'done-before');
  const explained = await ask(cluster, 'GET', '/-/explain/custom?id=evt_1');
  assert.match(
    String(explained.body['summary']),
    /duplicate.*completed with 202.*The work on it is done: completed with 200/,
  );
  assert.match(String(refused.body['summary']), /done since.*With force/);
  assert.deepEqual(idsIn(await ask(cluster, 'GET', '/-/dlq')), [id], 'it stays');
  assert.equal(cluster.application.visits.length, 1);

  const told = await Promise.all(
    Array.from({ length: 6 }, async () => (await ask(cluster, 'POST', `/-/dlq/${id}/replay?force=true`)).status),
  );
  assert.equal(told.filter((status) => status === 202).length, 1, told.join());
  await until(clock, 'the forced replay', async () => (cluster.application.visits.length === 2 ? true : undefined));
  await drained(cluster);
  assert.equal(cluster.application.visits.length, 2);
});

test('two operators replay everything at the same time: each event is forwarded once', async () => {
  await using cluster = await withDead(40, { gateways: 2 });
  const answers = await Promise.all(
    Array.from({ length: 2 }, async () => (await ask(cluster, 'POST', '/-/dlq/replay?all=true')).body),
  );
  const count = (of: string): number => answers.reduce((total, body) => total + Number(body[of]), 0);
  assert.equal(count('replayed'), 40, JSON.stringify(answers));
  await drained(cluster);
  await dead(cluster, 0);
  assert.equal(cluster.application.visits.length, 80);
});

test('on the command line: list, show, the bytes alone, replay, discard', async () => {
  await using cluster = await withDead(3);
  await using run = await commandLine(cluster.config);
  const listed = await run('dlq', 'list');
  assert.equal(listed.code, 0);
  assert.match(listed.text, /ID +ROUTE +DIED +ATTEMPTS +LAST ERROR/);
  assert.match(listed.text, /3 of 3 dead letters\./);
  const ids = idsIn({ body: JSON.parse((await run('dlq', 'list', '--json')).text) as Record<string, unknown> });
  const shown = await run('dlq', 'show', ids[0]!);
  assert.match(shown.text, /attempt 1: answered 500/);
  assert.match(shown.text, /POST \/github/);
  assert.match(shown.text, /\{"n":0\}/);
  assert.equal((await run('dlq', 'show', ids[0]!, '--body')).text, '{"n":0}');
  assert.deepEqual(await run('dlq', 'discard', ids[0]!), { code: 0, text: `${ids[0]}: discarded.` });
  assert.equal((await run('dlq', 'discard', ids[0]!)).code, 1);
  const replayed = await run('dlq', 'replay', '--route', 'github', '--status', '500');
  assert.deepEqual(replayed, { code: 0, text: '2 replayed.' });
  await dead(cluster, 0);
  assert.match((await run('dlq', 'list')).text, /No dead letters/);
});

test('asked wrongly: exit code 2, and nothing is touched', async () => {
  await using run = await commandLine({
    service: 'tests',
    queue: { url: 'redis://127.0.0.1:1' },
    routes: [{ name: 'a', path: '/a', sender: 'github', mode: 'async', secrets: [{ file: './github.secret' }] }],
  });
  for (const words of [
    ['dlq', 'lost'],
    ['explain', 'a', 'one', '--all'],
    ['serve', '--limit', '3'],
  ])
    assert.equal((await run(...words)).code, 2, words.join(' '));
  const unreachable = await run('dlq', 'list');
  assert.equal(unreachable.code, 1);
  assert.match(unreachable.text, /does not answer/);
});

test('without a queue there are no dead letters', async () => {
  await using run = await commandLine({
    routes: [{ name: 'a', path: '/a', sender: 'github', secrets: [{ file: './github.secret' }] }],
  });
  const said = await run('dlq', 'list');
  assert.equal(said.code, 2);
  assert.match(said.text, /without async mode there are no dead letters/);
});

test('the queue is away: 503, and the gateway lives', async () => {
  await using cluster = await withDead(1);
  await cluster.store.kill();
  const { status, body } = await ask(cluster, 'GET', '/-/dlq');
  assert.deepEqual([status, body['error']], [503, 'the queue does not answer']);
  assert.equal((await ask(cluster, 'GET', '/livez', undefined)).status, 200);
});
