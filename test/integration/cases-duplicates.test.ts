/** Public reports about duplicates: which deliveries are one event, and what becomes of its copies. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, suite, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import type { Reply } from '../../src/demo/exchange.ts';
import type { Signed } from '../../src/demo/signers.ts';
import { until } from '../../src/demo/until.ts';
import { held } from '../support/application.ts';
import { startCluster, votersUp, type Cluster } from '../support/cluster.ts';
import { secrets } from '../support/config.ts';
import { custom, github, outcome, shopify, slack } from '../support/deliveries.ts';
import { eventKeys, onNode } from '../support/keys.ts';
import { headerLines, postHead } from '../support/raw-client.ts';
import { refusedStart } from '../support/refused-start.ts';

const key = [{ file: './custom.secret' }];
const signedBody = { scheme: 'hmac-sha256', header: 'x-signature', prefix: 'sha256=' };
const routes = [
  { name: 'github', path: '/github', sender: 'github', secrets: [{ file: './github.secret' }] },
  { name: 'app2', path: '/app2', sender: 'github', secrets: [{ file: './githubOld.secret' }] },
  { name: 'shopify', path: '/shopify', sender: 'shopify', secrets: key, inFlight: { policy: 'wait' } },
  { name: 'slack', path: '/slack', sender: 'slack', secrets: key },
  {
    ...{ name: 'slack-message', path: '/slack-message', sender: 'slack', secrets: key },
    identity: { parts: [{ json: '/event/channel' }, { json: '/event/event_ts' }] },
  },
  { name: 'hashed', path: '/hashed', secrets: key, verify: signedBody, identity: { bodyHash: true } },
  {
    ...{ name: 'short', path: '/short', secrets: key, verify: signedBody, retention: '2s' },
    identity: { parts: [{ json: '/id' }] },
  },
];

let cluster: Cluster;
before(async () => void (cluster = await startCluster({ settings: { routes } })));
after(async () => await cluster[Symbol.asyncDispose]());

/** `200 duplicate`, `200 relayed`… */
const told = (reply: Reply): string => `${reply.status} ${outcome(reply) ?? 'relayed'}`;

/** Delivers all of them one after the other, at the gateways in turn. */
async function deliver(path: string, ...deliveries: readonly Signed[]): Promise<string[]> {
  const replies: string[] = [];
  for (const [n, delivery] of deliveries.entries()) replies.push(told(await cluster.post(n, path, delivery)));
  return replies;
}

/** Runs `work` and returns how many requests reached the application meanwhile. */
async function forwardedBy(work: () => Promise<void>): Promise<number> {
  const before_ = cluster.application.visits.length;
  await work();
  return cluster.application.visits.length - before_;
}

/** Takes lock and record of an event from every node. */
async function forgetEvent(id: string): Promise<void> {
  const event = cluster.application.of(id)[0]!.key;
  for (const node of cluster.nodes) {
    const names = (await eventKeys(node, 'ho')).filter((name) => name.includes(event));
    assert.ok(names.length > 0, 'every node remembers it');
    await onNode(node, async (redis) => await redis.del(names));
  }
}

test("B07: a sender's retry header decides nothing: a fresh id is forwarded", async () => {
  const retried = ['X-Slack-Retry-Num', '1', 'X-Slack-Retry-Reason', 'http_timeout'];
  const forwarded = await forwardedBy(async () => {
    assert.deepEqual(await deliver('/slack', slack('{"event_id":"E1"}', retried)), ['200 relayed']);
    assert.deepEqual(await deliver('/slack', slack('{"event_id":"E1"}')), ['200 duplicate']);
  });
  assert.equal(forwarded, 1);
});

test('B07: an event is a duplicate for its retention, and no longer', async () => {
  const send = async () => await cluster.post(0, '/short', custom('{"id":"E2"}'));
  const begunMs = systemClock.now();
  assert.equal(told(await send()), '200 relayed');
  const again = await until(systemClock, 'an event that is forgotten', async () => {
    const reply = await send();
    return outcome(reply) === 'duplicate' ? undefined : reply;
  });
  assert.equal(told(again), '200 relayed');
  assert.ok(systemClock.now() - begunMs >= 2_000);
  assert.equal(cluster.application.of('E2').length, 2);
});

test('B07: a retention that is shorter than the sender may retry is refused at the start, naming both', async () => {
  const { exit, output } = await refusedStart({
    routes: [{ name: 'slack', path: '/slack', sender: 'slack', secrets: key, retention: '1h' }],
  });
  assert.equal(exit.code, 2);
  assert.match(output, /routes\[0\]\.retention: found 1h, but Slack.* may retry for 1d; needs at least that/);
});

test('B08: copies with fresh event ids are events of their own, unless the route names the message', async () => {
  const event = { channel: 'C1', event_ts: '1700000000.000100' };
  const three = ['Ev1', 'Ev2', 'Ev3'].map((id) => slack(JSON.stringify({ event_id: id, event })));
  assert.deepEqual(await deliver('/slack', ...three), ['200 relayed', '200 relayed', '200 relayed']);
  assert.deepEqual(await deliver('/slack-message', ...three), ['200 relayed', '200 duplicate', '200 duplicate']);

  const nameless = [{}, { channel: 'C1' }, { channel: null, event_ts: null }].map((partial) =>
    slack(JSON.stringify({ event_id: 'Ev4', event: partial })),
  );
  const forwarded = await forwardedBy(async () => {
    assert.deepEqual(await deliver('/slack-message', ...nameless), Array(3).fill('400 rejected'));
  });
  assert.equal(forwarded, 0, 'what is missing never becomes a name');
});

test('B09: one delivery id on two routes is two events', async () => {
  const forwarded = await forwardedBy(async () => {
    assert.deepEqual(await deliver('/github', github('G1', '{"app":1}')), ['200 relayed']);
    assert.deepEqual(await deliver('/app2', github('G1', '{"app":2}', secrets.githubOld)), ['200 relayed']);
  });
  assert.equal(forwarded, 2);
  assert.equal(new Set(cluster.application.of('G1').map((visit) => visit.key)).size, 2);
});

test('B12: without an id there is no shared name', async () => {
  const nameless = (body: string, id?: string): Signed => {
    const { headers, body: bytes } = github('', body);
    const at = headers.indexOf('X-GitHub-Delivery');
    return { headers: headers.toSpliced(at, 2, ...(id === undefined ? [] : ['X-GitHub-Delivery', id])), body: bytes };
  };
  const forwarded = await forwardedBy(async () => {
    const missing = [nameless('{"n":1}'), nameless('{"n":2}'), nameless('{"n":3}'), nameless('{"n":3}')];
    assert.deepEqual(await deliver('/github', ...missing), Array(4).fill('400 rejected'));
    assert.deepEqual(
      await deliver('/github', nameless('{"n":4}', ''), nameless('{"n":5}', ' ')),
      Array(2).fill('400 rejected'),
    );
  });
  assert.equal(forwarded, 0, 'the stated policy: refused');

  const bodies = ['{"n":1}', '{"n":2}', '{"n":2}'].map(custom);
  assert.deepEqual(await deliver('/hashed', ...bodies), ['200 relayed', '200 relayed', '200 duplicate']);
});

test('B12: an odd id is a name like any other, and no Redis key grows with it', async () => {
  const odd = ['9'.repeat(300), '%0a', 'two words', 'a:l', '{x}', '*'];
  for (const id of odd) {
    assert.deepEqual(await deliver('/github', github(id), github(id)), ['200 relayed', '200 duplicate'], id);
  }
  const names = (await Promise.all(cluster.nodes.map(async (node) => await eventKeys(node, 'ho')))).flat();
  assert.ok(names.length >= odd.length);
  for (const name of names) assert.match(name, /^ho:\{[0-9a-f]\}[\w-]{22}:[lr]$/);
});

test('B13: without a replay guard a captured delivery passes under fresh ids; under its own it is a duplicate', async () => {
  const captured = github('original', '{"b":13}');
  const replayed = ['new-1', 'new-2', 'new-3', 'new-4', 'new-5'].map((id) => github(id, '{"b":13}'));
  const forwarded = await forwardedBy(async () => {
    assert.deepEqual(await deliver('/github', captured, ...replayed), Array(6).fill('200 relayed'));
    assert.deepEqual(await deliver('/github', captured), ['200 duplicate']);
  });
  assert.equal(forwarded, 6);
});

test('B15: a redelivery is told to be a duplicate, everywhere it can be seen; once forgotten it is forwarded again', async () => {
  const counted = async () =>
    await cluster.metric('hookonce_deliveries_total', { route: 'github', outcome: 'duplicate' });
  const before_ = await counted();
  assert.deepEqual(await deliver('/github', github('D10'), github('D10')), ['200 relayed', '200 duplicate']);
  assert.equal(await counted(), before_ + 1);
  const { key: event } = cluster.application.of('D10')[0]!;
  await cluster.gateways[1]!.child.line(new RegExp(`(?=.*"outcome":"duplicate")(?=.*"key":"${event.slice(0, 8)}")`));

  await forgetEvent('D10');
  assert.deepEqual(await deliver('/github', github('D10')), ['200 relayed']);
  assert.equal(cluster.application.of('D10').length, 2);
});

suite('B17: what was done is remembered by the nodes, not by a process', () => {
  test('a restart forgets nothing, and every gateway knows', async () => {
    const [gateway] = cluster.gateways as [(typeof cluster.gateways)[number]];
    assert.deepEqual(await deliver('/github', github('D11')), ['200 relayed']);
    assert.deepEqual(await gateway.terminate(), { code: 0, signal: null });
    await gateway.restart();
    await votersUp(gateway, 3);
    assert.deepEqual(await deliver('/github', github('D11'), github('D11')), ['200 duplicate', '200 duplicate']);
    assert.equal(cluster.application.of('D11').length, 1);
  });

  test('no process answers for an event that the nodes do not hold any more', async () => {
    await forgetEvent('D11');
    assert.deepEqual(await deliver('/github', github('D11')), ['200 relayed']);
    assert.equal(cluster.application.of('D11').length, 2);
  });
});

for (const how of ['FIN', 'RST'] as const) {
  test(`B18: a sender that gives up by ${how} and sends again: one forward, and its copies are duplicates`, async () => {
    const id = `W-${how}`;
    const delivery = shopify(id, JSON.stringify({ id }));
    const work = held();
    cluster.application.script(id, work.step);
    const url = `${cluster.gateways[0]!.url}/shopify`;
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => {});
    const lines = [...headerLines(delivery.headers), `Content-Length: ${delivery.body.length}`];
    socket.write(Buffer.concat([Buffer.from(postHead(url, lines)), delivery.body]));
    await work.arrived;
    if (how === 'FIN') socket.destroy();
    else socket.resetAndDestroy();

    const copies = [0, 1].map(async (n) => await cluster.post(n, '/shopify', delivery));
    await until(systemClock, 'copies that wait', async () =>
      (await cluster.metric('hookonce_waiting', { route: 'shopify' })) === 2 ? true : undefined,
    );
    work.finish();
    assert.deepEqual((await Promise.all(copies)).map(told), ['200 duplicate', '200 duplicate']);
    assert.deepEqual(await deliver('/shopify', delivery), ['200 duplicate']);
    assert.deepEqual(
      cluster.application.of(id).map(({ attempt }) => attempt),
      [1],
    );
  });
}
