/** explain and forget, as an operator has them: on the command line beside running gateways, and on the admin port. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { stringify } from 'yaml';
import { systemClock } from '../../src/clock.ts';
import { startChild } from '../../src/demo/child.ts';
import { exchange } from '../../src/demo/exchange.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import { until } from '../../src/demo/until.ts';
import { held } from '../support/application.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { gatewayConfig, secretFiles, secrets } from '../support/config.ts';
import { custom, github, outcome } from '../support/deliveries.ts';
import { onNode } from '../support/keys.ts';
import { program } from '../support/program.ts';

// A command connects anew: more patient with a busy machine than a gateway in service has to be.
const redis = { timeout: '1s' };
const claims = { budget: '3s', lockTtl: '30s' };
const admin = { token: { file: './admin.secret' } };

interface Hand extends AsyncDisposable {
  (...args: string[]): Promise<{ code: number | null; text: string }>;
}

/** The command line in a pod of the cluster's service. */
async function hand(cluster: Cluster): Promise<Hand> {
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-operate-'));
  const urls = cluster.nodes.map(({ url }) => url);
  const config = stringify(gatewayConfig(cluster.application.url, urls, { admin, redis, claims }));
  for (const [name, text] of Object.entries({ ...secretFiles, 'config.yaml': config }))
    await writeFile(join(dir, name), text);
  const run = async (...args: string[]) => {
    await using child = startChild(program.node, [program.entry, ...args, '--config', join(dir, 'config.yaml')]);
    return { code: (await child.exited).code, text: child.lines.join('\n') };
  };
  return Object.assign(run, { [Symbol.asyncDispose]: async () => await rm(dir, { recursive: true }) });
}

/** The admin port of a gateway, asked with the token unless said. */
async function ask(gateway: Gateway, method: string, path: string, token = secrets.admin as string) {
  const { status, body } = await exchange(gateway.adminUrl + path, {
    method,
    headers: ['Authorization', `Bearer ${token}`],
  });
  return { status, body: JSON.parse(body.toString()) as Record<string, unknown> };
}

/** What a delivery would find, by gateway 0; `event` is `<route>?<id or key>`. */
async function forecast(cluster: Cluster, event: string): Promise<Record<string, unknown>> {
  const { status, body } = await ask(cluster.gateways[0]!, 'GET', `/-/explain/${event}`);
  assert.equal(status, 200);
  return body['forecast'] as Record<string, unknown>;
}

test('B15: done, a duplicate, forgotten, and forwarded again as attempt 2', async () => {
  await using cluster = await startCluster({ settings: { admin, redis, claims } });
  await using run = await hand(cluster);
  const deliver = async (n: number) => await cluster.post(n, '/github', github('B15'));
  assert.deepEqual(await forecast(cluster, 'github?id=B15'), { kind: 'forwarded', attempt: 1 });
  assert.equal((await run('forget', 'github', 'B15')).code, 1, 'nobody knows it');

  await deliver(0);
  assert.equal(outcome(await deliver(1)), 'duplicate');
  const before = await forecast(cluster, 'github?id=B15');
  assert.deepEqual([before['kind'], before['attempt'], before['status']], ['duplicate', 1, 200]);

  assert.deepEqual(await run('forget', 'github', 'B15'), {
    code: 0,
    text: 'Forgotten: the next delivery is processed, as attempt 2.',
  });
  assert.deepEqual(await forecast(cluster, 'github?id=B15'), { kind: 'forwarded', attempt: 2 });
  assert.equal((await run('forget', 'github', 'B15')).code, 0, 'again is as once');
  assert.equal((await deliver(0)).status, 200);
  assert.equal(outcome(await deliver(1)), 'duplicate');
  assert.deepEqual(
    cluster.application.of('B15').map(({ attempt }) => attempt),
    [1, 2],
  );
});

test('forget while an attempt is running is refused; forced, the completion of that attempt is', async () => {
  await using cluster = await startCluster({
    settings: { admin, redis, claims: { ...claims, lockTtl: '10s', relyOnWatchdog: true } },
  });
  await using run = await hand(cluster);
  const work = held();
  cluster.application.script('running', work.step);
  const first = cluster.post(0, '/github', github('running'));
  const { key } = await work.arrived;

  const refused = await run('forget', 'github', 'running');
  assert.equal(refused.code, 1);
  assert.match(
    refused.text,
    /^Refused: an attempt holds the event; its lock runs out in \d+\.\d s unless it is renewed\./,
  );
  assert.equal((await forecast(cluster, `github?key=${key}`))['kind'], 'in-progress');

  const forced = await run('forget', 'github', 'running', '--force');
  assert.equal(forced.code, 0, forced.text);
  assert.match(forced.text, /as attempt 2\. An attempt is still running/);
  assert.equal((await forecast(cluster, 'github?id=running'))['kind'], 'in-progress', 'the lock is left to its owner');
  work.finish();
  assert.equal((await first).status, 200, 'its sender is told what the application answered');
  await until(systemClock, 'the lock to go', async () =>
    (await forecast(cluster, 'github?id=running'))['kind'] === 'forwarded' ? true : undefined,
  );
  assert.deepEqual(await forecast(cluster, 'github?id=running'), { kind: 'forwarded', attempt: 2 });
  assert.equal((await cluster.post(1, '/github', github('running'))).status, 200);
  assert.deepEqual(
    cluster.application.of('running').map(({ attempt }) => attempt),
    [1, 2],
  );
});

test('with a node down forget fails and names it; once it is back the event is forgotten', async () => {
  await using cluster = await startCluster({
    gateways: 1,
    redis: { appendonly: 'always' },
    settings: { admin, redis, claims },
  });
  await using run = await hand(cluster);
  const third = cluster.nodes[2]!;
  await cluster.post(0, '/github', github('down'));
  await until(systemClock, 'all nodes to know it', async () =>
    (await onNode(third, (one) => one.keys('*:r'))).length === 1 ? true : undefined,
  );
  await third.kill();
  const failed = await run('forget', 'github', 'down');
  assert.equal(failed.code, 1);
  assert.match(
    failed.text,
    new RegExp(
      `^Not forgotten for certain: it may still be remembered by 127.0.0.1:${third.port} \\(down, refused\\)\\.`,
    ),
  );
  const { voters } = JSON.parse((await run('explain', 'github', 'down', '--json')).text) as {
    voters: { answer: string }[];
  };
  assert.deepEqual(
    voters.map(({ answer }) => answer),
    ['ok', 'ok', 'none'],
  );

  const second = cluster.nodes[1]!;
  second.freeze();
  assert.equal((await run('forget', 'github', 'down')).code, 1);
  assert.equal((await forecast(cluster, 'github?id=down'))['kind'], 'unavailable');
  second.thaw();
  await third.start();
  await until(systemClock, 'every node to answer', async () =>
    (await ask(cluster.gateways[0]!, 'POST', '/-/forget/github?id=down')).status === 200 ? true : undefined,
  );
  assert.equal((await cluster.post(0, '/github', github('down'))).status, 200);
  assert.deepEqual(
    cluster.application.of('down').map(({ attempt }) => attempt),
    [1, 2],
  );
});

test('explain tells a person what every node knows, and no secret', async () => {
  await using cluster = await startCluster({ gateways: 1, settings: { admin, redis, claims } });
  await using run = await hand(cluster);
  const { key } =
    (await cluster.post(0, '/custom/a', custom('{"id":"77","secret":"in-the-body"}')), cluster.application.visits[0]!);
  const { code, text } = await run('explain', 'custom', '"77"');
  assert.equal(code, 0);
  const lines = text.split('\n');
  assert.equal(lines[1], `key    ${key}`);
  assert.equal(lines[2], 'by     JSON /id, a text');
  assert.match(lines[4]!, /^NODE +ANSWER +LOCK +RECORD +BOOT$/);
  for (const [index, node] of cluster.nodes.entries())
    assert.match(
      lines[5 + index]!,
      new RegExp(
        `^127.0.0.1:${node.port} +done +- +attempt 1, completed with 200 at 2\\d{3}-.* UTC.*, kept 6 d 23 h +\\S+$`,
      ),
    );
  assert.match(
    lines.at(-1)!,
    /^A delivery would now be answered as a duplicate, and not forwarded: completed with 200 at .*, attempt 1\.$/,
  );
  for (const secret of [...Object.values(secrets), 'in-the-body']) assert.ok(!text.includes(secret));
  assert.deepEqual(
    await forecast(cluster, 'custom?id=77'),
    { kind: 'forwarded', attempt: 1 },
    'the number 77 is another event',
  );

  const wrong = await Promise.all([
    run('explain'),
    run('explain', 'custom'),
    run('explain', 'nowhere', '1'),
    run('forget', 'custom', '1', '2'),
    run('check', '--force'),
  ]);
  assert.deepEqual(
    wrong.map((said) => [said.code, said.text.split('\n')[0]]),
    [
      [2, 'hookonce: explain needs the name of a route, and the ids of an event'],
      [2, 'hookonce: route custom names an event by one id, found 0; needs JSON /id'],
      [2, 'hookonce: there is no route nowhere; there is github, stripe, custom'],
      [2, 'hookonce: route custom names an event by one id, found 2; needs JSON /id'],
      [2, 'hookonce: check takes no such option'],
    ],
  );
});

test('the admin port does both for whoever has the token, the embedded voter included', async () => {
  await using cluster = await startCluster({ nodes: 0, gateways: 0 });
  const gateway = await cluster.gateway({ admin }, 1);
  const deliver = async () => await exchange(`${gateway.url}/github`, { method: 'POST', ...github('by-admin') });
  await deliver();
  assert.equal((await ask(gateway, 'GET', '/-/explain/github?id=by-admin', '')).status, 401);
  assert.equal((await ask(gateway, 'POST', '/-/forget/github?id=by-admin', 'wrong')).status, 401);
  assert.equal(outcome(await deliver()), 'duplicate');
  const explained = await ask(gateway, 'GET', '/-/explain/github?id=by-admin');
  assert.equal(explained.status, 200);
  assert.match(String(explained.body['summary']), /answered as a duplicate/);
  const forgotten = await ask(gateway, 'POST', '/-/forget/github?id=by-admin');
  assert.deepEqual([forgotten.status, forgotten.body['kind'], forgotten.body['attempt']], [200, 'forgotten', 1]);
  assert.equal(outcome(await deliver()), undefined);
  assert.deepEqual(
    cluster.application.of('by-admin').map(({ attempt }) => attempt),
    [1, 2],
  );
  assert.equal((await ask(gateway, 'POST', '/-/forget/github?id=never')).status, 404);
  assert.ok(gateway.child.lines.every((line) => !line.includes(secrets.admin)));
});
