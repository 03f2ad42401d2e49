/** A configuration that changes while deliveries come: mounted as in Kubernetes, and swapped under traffic. */
import assert from 'node:assert/strict';
import { rename, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { startChild } from '../../src/demo/child.ts';
import type { Reply } from '../../src/demo/exchange.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held } from '../support/application.ts';
import { github, outcome } from '../support/deliveries.ts';
import { mountedGateway, type MountedGateway } from '../support/mounted-gateway.ts';
import { program } from '../support/program.ts';

const secret = 'test-secret-github';
const files = { github: `${secret}\n` };
const route = (change: Readonly<Record<string, unknown>> = {}) => ({
  ...{ name: 'github', path: '/github', sender: 'github', secrets: [{ file: '../secrets/github' }] },
  ...change,
});
const SUCCESSFUL = 'hookonce_config_last_reload_successful';
const RELOADS = 'hookonce_config_reloads_total';
const REFUSED = { result: 'refused' };

/** More at once on a machine that does not keep up would be refused for that alone. */
const MOST_OPEN = 20;

/** Deliveries at a steady rate until it is stopped, fewer where they are not answered in time; what they were answered, in no order. */
function traffic(perSecond: number, send: (n: number) => Promise<Reply>) {
  const replies: Promise<Reply>[] = [];
  let open = 0;
  const deliver = async (n: number): Promise<Reply> => {
    open += 1;
    return await send(n).finally(() => (open -= 1));
  };
  const going = new AbortController();
  const done = (async () => {
    const beganMs = systemClock.now();
    while (!going.signal.aborted) {
      while (open < MOST_OPEN && replies.length < ((systemClock.now() - beganMs) * perSecond) / 1000)
        replies.push(deliver(replies.length));
      await systemClock.sleep(5);
    }
    return (await Promise.all(replies)).map(({ status }) => status);
  })();
  return {
    sent: () => replies.length,
    stop: async () => {
      going.abort();
      return await done;
    },
  };
}

const only = (statuses: readonly number[]): number[] => [...new Set(statuses)].toSorted((a, b) => a - b);

async function answers(gateway: MountedGateway, path: string, id: string): Promise<number> {
  return (await gateway.post(path, github(id, undefined, secret))).status;
}

test('B87: each of four swaps of the mount is active within five seconds', async () => {
  await using gateway = await mountedGateway({ routes: [route()] }, files);
  for (const n of [1, 2, 3, 4]) {
    await gateway.configure({ routes: [route({ path: `/${n}` })], log: { level: n % 2 === 0 ? 'info' : 'warn' } });
    const isActive = async () => ((await answers(gateway, `/${n}`, `swap-${n}`)) === 200 ? true : undefined);
    await until(systemClock, `swap ${n}`, isActive, 5_000);
    assert.equal(await answers(gateway, n === 1 ? '/github' : `/${n - 1}`, `old-${n}`), 404);
  }
  assert.equal(await gateway.metric(RELOADS, { result: 'applied' }), 4);
  const delivered = gateway.child.lines.filter(
    (line) => line.includes('"msg":"delivery"') && line.includes('"outcome":"delivered"'),
  );
  assert.equal(delivered.length, 2, 'at level warn the deliveries of every other swap are not logged');
});

test('B89: a bad file changes nothing but the gauge, whatever is wrong with it; cold start with it fails', async () => {
  await using gateway = await mountedGateway({ routes: [route()] }, files);
  const good = gateway.text({ routes: [route()] });
  const bad = {
    'broken YAML': 'routes: [\n',
    'a wrong type': gateway.text({ routes: [route()], admin: { port: 'abc' } }),
    'an empty file': '',
    'a secret that does not exist': gateway.text({ routes: [route({ secrets: [{ file: '../secrets/none' }] })] }),
    'a route twice': gateway.text({ routes: [route(), route({ name: 'other' })] }),
  };
  const load = traffic(50, async (n) => await gateway.post('/github', github(`b89-${n}`, undefined, secret)));
  let refused = 0;
  const isRefused = async (what: string) => {
    refused += 1;
    await gateway.reaches(refused, RELOADS, REFUSED);
    assert.equal(await gateway.metric(SUCCESSFUL), 0, what);
    const line = gateway.child.lines.findLast((each) => each.includes('refused as a whole'))!;
    assert.equal((JSON.parse(line) as { path: string }).path, gateway.configFile, what);
  };
  for (const [what, text] of Object.entries(bad)) {
    await gateway.configure(text);
    await isRefused(what);
    if (what !== 'a wrong type') continue;
    await using cold = startChild(program.node, [program.entry, 'serve', '--config', gateway.configFile]);
    assert.equal((await cold.exited).code, 2);
  }
  await rename(gateway.configFile, `${gateway.configFile}.gone`);
  await isRefused('no file');
  await rename(`${gateway.configFile}.gone`, gateway.configFile);
  await gateway.configure(good);
  await gateway.reaches(1, SUCCESSFUL);
  assert.deepEqual(only(await load.stop()), [200]);
  assert.ok(gateway.child.running());
  assert.ok(!gateway.child.lines.join('\n').includes(secret));
});

test('twenty swaps in a row under 200 deliveries a second: the last one holds, and no delivery fails', async () => {
  await using gateway = await mountedGateway({ routes: [route()] }, files);
  const load = traffic(200, async (n) => await gateway.post('/github', github(`swaps-${n}`, undefined, secret)));
  const numbered = (n: number) => gateway.text({ routes: [route(), route({ name: `r${n}`, path: `/r${n}` })] });
  for (let n = 1; n <= 20; n++) {
    const before = await gateway.metric(RELOADS);
    await gateway.configure(n % 4 === 0 ? 'routes: {' : numbered(n % 4 === 3 ? n - 1 : n));
    // Some of them one right after the other, so that they may be seen as one.
    if (n % 5 !== 0)
      await until(systemClock, 'a swap that was seen', async () =>
        (await gateway.metric(RELOADS)) > before ? true : undefined,
      );
  }
  await gateway.reaches(0, SUCCESSFUL);
  await gateway.configure(numbered(21));
  await gateway.reaches(1, SUCCESSFUL);
  const statuses = await load.stop();
  assert.deepEqual(only(statuses), [200]);
  assert.ok(statuses.length > 200, String(statuses.length));
  assert.equal(gateway.application.visits.length, statuses.length);
  assert.equal(await answers(gateway, '/r21', 'last'), 200);
  assert.equal(await answers(gateway, '/r18', 'last'), 404);
});

test('a swap to the same content changes nothing, and counts as read', async () => {
  await using gateway = await mountedGateway({ routes: [route()] }, files);
  await answers(gateway, '/github', 'same');
  const readAt = await gateway.metric('hookonce_config_last_reload_timestamp_seconds');
  await gateway.configure({ routes: [route()] });
  await gateway.reaches(1, RELOADS, { result: 'unchanged' });
  assert.ok((await gateway.metric('hookonce_config_last_reload_timestamp_seconds')) > readAt);
  assert.equal(await gateway.metric(SUCCESSFUL), 1);
  assert.equal(await gateway.metric('hookonce_deliveries_total', { route: 'github', outcome: 'delivered' }), 1);
});

test('a secret is rotated under traffic, senders switch when they like, and nobody is answered 401', async () => {
  const both = { routes: [route({ secrets: [{ file: '../secrets/new' }, { file: '../secrets/old' }] })] };
  await using gateway = await mountedGateway(both, { new: 'first-secret', old: 'first-secret' });
  const senders = Array.from({ length: 8 }, () => 'first-secret');
  const load = traffic(
    100,
    async (n) => await gateway.post('/github', github(`rotation-${n}`, undefined, senders[n % 8])),
  );
  const used = async (name: string) => await gateway.metric('hookonce_secret_used_total', { secret: name });
  let current = 'first-secret';
  for (const next of ['second-secret', 'third-secret']) {
    await gateway.secrets.swap({ new: next, old: current });
    // The signature with the old one tells that the new one is in use: until now it was the first of the two.
    const oldBefore = await used('old');
    await until(
      systemClock,
      `${next} to be in use`,
      async () => ((await used('old')) > oldBefore ? true : undefined),
      5_000,
    );
    for (const n of [3, 0, 7, 1, 5, 2, 6, 4]) {
      await systemClock.sleep(systemClock.random() * 40);
      senders[n] = next;
    }
    // The old one may go as soon as its counter stands still: what was signed with it has been answered.
    const unanswered = load.sent();
    await until(systemClock, 'the last delivery with the old secret', () =>
      load.sent() > unanswered + 50 ? true : undefined,
    );
    current = next;
  }
  await gateway.configure({ routes: [route({ secrets: [{ file: '../secrets/new' }] })] });
  await gateway.reaches(3, RELOADS, { result: 'applied' });
  assert.deepEqual(only(await load.stop()), [200]);
  assert.equal(await used('old'), 0, 'gone with its reference');
  assert.ok((await used('new')) > 0);
  const late = await gateway.post('/github', github('late', undefined, 'second-secret'));
  assert.equal(late.status, 401);
});

test('a delivery in flight ends under the configuration it began with, also when its route is gone', async () => {
  await using gateway = await mountedGateway({ routes: [route({ completeOn: [410] })] }, files);
  const work = held();
  gateway.application.script('in-flight', work.step);
  const reply = gateway.post('/github', github('in-flight', undefined, secret));
  await work.arrived;
  await gateway.configure({ routes: [route({ name: 'other', path: '/other' })] });
  await gateway.reaches(1, RELOADS, { result: 'applied' });
  assert.equal(await answers(gateway, '/github', 'in-flight'), 404);
  assert.equal(await gateway.metric('hookonce_in_flight', { route: 'github' }), 1);
  work.finish({ status: 410 });
  assert.equal((await reply).status, 410);
  await gateway.configure({ routes: [route()] });
  await gateway.reaches(2, RELOADS, { result: 'applied' });
  const again = await gateway.post('/github', github('in-flight', undefined, secret));
  assert.deepEqual([again.status, outcome(again)], [410, 'duplicate'], 'it was completed by the rules of its time');
});

test('limits are taken over: of bodies, headers, places at the application and deliveries at once', async () => {
  const routes = [route({ inFlight: { policy: 'reject' } })];
  await using gateway = await mountedGateway({ routes }, files);
  const body = JSON.stringify({ text: 'x'.repeat(2_000) });
  const post = async (id: string, more: readonly string[] = []) => {
    const { headers, body: bytes } = github(id, body, secret);
    return (await gateway.post('/github', { headers: [...headers, ...more], body: bytes })).status;
  };
  assert.equal(await post('before', ['X-Large', 'y'.repeat(4_000)]), 200);
  let applied = 0;
  const configure = async (settings: Readonly<Record<string, unknown>>) => {
    await gateway.configure({ routes, ...settings });
    await gateway.reaches(++applied, RELOADS, { result: 'applied' });
  };
  await configure({ limits: { body: '1KiB' } });
  assert.equal(await post('body'), 413);
  await configure({ limits: { headers: '2KiB' } });
  assert.equal(await post('headers', ['X-Large', 'y'.repeat(4_000)]), 431);
  await configure({ limits: { body: '1KiB', memory: '1KiB' }, routes: [route({ limits: { body: '1KiB' } })] });
  assert.equal(await post('memory'), 413);

  const busy = async (id: string) => {
    const work = held();
    gateway.application.script(id, work.step);
    const reply = post(id);
    await work.arrived;
    return async () => {
      work.finish();
      assert.equal(await reply, 200);
    };
  };
  await configure({ limits: { inFlight: 1 } });
  const finishOne = await busy('one');
  assert.equal(await post('too many'), 503);
  await configure({ upstream: { url: gateway.application.url, maxInFlight: 1, maxWaiting: 0 } });
  assert.equal(await post('no place'), 503);
  await configure({ upstream: { url: gateway.application.url, maxInFlight: 300 } });
  assert.equal(await post('a place'), 200);
  await finishOne();
});

test('what needs a restart says so, and the rest of the file holds', async () => {
  await using gateway = await mountedGateway({ routes: [route()] }, files);
  await gateway.configure({
    routes: [route({ path: '/moved' })],
    service: 'another',
    listen: { host: '127.0.0.1', port: 1 },
  });
  const line = await gateway.child.line(/need a restart/);
  assert.deepEqual((JSON.parse(line) as { settings: string[] }).settings.toSorted(), ['listen.port', 'service']);
  assert.equal(await gateway.metric('hookonce_config_restart_needed'), 1);
  assert.equal(await answers(gateway, '/moved', 'moved'), 200);
  await gateway.configure({ routes: [route()] });
  await gateway.reaches(0, 'hookonce_config_restart_needed');
});

test('a secret that is written anew in place is in use within seconds', async () => {
  await using gateway = await mountedGateway({ routes: [route()] }, files);
  await writeFile(`${gateway.secrets.dir}/github`, 'written-in-place');
  const isActive = async () =>
    (await gateway.post('/github', github('in-place', undefined, 'written-in-place'))).status === 200
      ? true
      : undefined;
  await until(systemClock, 'the new secret', isActive, 5_000);
});

test('a route that observes forwards copies and wrong signatures, and counts them', async () => {
  await using gateway = await mountedGateway({ routes: [route({ observe: true })] }, files);
  assert.equal(await answers(gateway, '/github', 'seen'), 200);
  gateway.application.script('seen', answer(409));
  assert.equal(await answers(gateway, '/github', 'seen'), 409);
  assert.equal((await gateway.post('/github', github('seen', undefined, 'wrong'))).status, 200);
  const marks = gateway.application
    .of('seen')
    .map(({ headers }) => header(headers, 'hookonce-observed') ?? header(headers, 'hookonce-attempt'));
  assert.deepEqual(marks, ['1', 'duplicate', 'rejected']);
  assert.equal(await gateway.metric('hookonce_observed_total', { outcome: 'duplicate' }), 1);
  assert.equal(await gateway.metric('hookonce_observed_total', { outcome: 'rejected' }), 1);
  assert.equal(await gateway.metric('hookonce_deliveries_total', { outcome: 'duplicate' }), 0);
});
