/** Deliveries with several events, over real gateways and Redis nodes: who gets which of them, and how often. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import type { Visit } from '../../src/demo/application.ts';
import * as signers from '../../src/demo/signers.ts';
import { answer, held } from '../support/application.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { secrets, shortLock } from '../support/config.ts';
import { custom, outcome } from '../support/deliveries.ts';
import { onNode } from '../support/keys.ts';
import { startLedgerCluster } from '../support/ledger-cluster.ts';

const own = {
  secrets: [{ file: './custom.secret' }],
  verify: { scheme: 'hmac-sha256', header: 'x-signature', prefix: 'sha256=' },
  elements: { at: '/items', id: ['/id'] },
};
const line = { sender: 'line', secrets: [{ file: './custom.secret' }], elements: 'each' };
const routes = [
  { name: 'batch', path: '/batch', ...own },
  { name: 'waiting', path: '/waiting', ...own, inFlight: { policy: 'wait', wait: '10s' } },
  { name: 'line', path: '/line', ...line },
];
const admin = { token: { file: './admin.secret' } };
const settings = { routes, admin };

let cluster: Cluster;
before(async () => void (cluster = await startCluster({ settings })));
after(async () => await cluster[Symbol.asyncDispose]());

/** What the application has seen since now. */
function visits(): () => readonly Visit[] {
  const before_ = cluster.application.visits.length;
  cluster.application.otherwise(answer(200));
  return () => cluster.application.visits.slice(before_);
}

const batch = (ids: readonly string[], more = '') => {
  const items = ids.map((id) => `\n    { "id" : ${JSON.stringify(id)}, "amount": 1.10, "n": 12345678901234567890 }`);
  return `{\n  "at": "2026-11-30", "items": [${items.join(',')}\n  ]${more}\n}\n`;
};
const text = (visit: Visit | undefined) => visit!.body.toString();
const idsOf = (visit: Visit) => (JSON.parse(text(visit)) as { items: { id: string }[] }).items.map(({ id }) => id);
const mark = ({ headers }: Visit) => header(headers, 'hookonce-elements');

test('events that were handled are left out of later deliveries, whatever they come together with', async () => {
  const seen = visits();
  const send = async (n: number, ids: readonly string[], more?: string) =>
    await cluster.post(n, '/batch', custom(batch(ids, more)));

  assert.equal((await send(0, ['a', 'b', 'c'])).status, 200);
  assert.equal(text(seen()[0]), batch(['a', 'b', 'c']), 'as it came');
  const mixed = await send(1, ['d', 'b', 'e', 'a'], ', "more": ["b"]');
  assert.deepEqual([mixed.status, outcome(mixed)], [200, undefined]);
  assert.equal(text(seen()[1]), batch(['d', 'e'], ', "more": ["b"]'), 'in its own bytes');
  const again = await send(0, ['e', 'd', 'c']);
  assert.deepEqual([again.status, outcome(again)], [200, 'duplicate']);
  assert.deepEqual(seen().map(mark), ['3/3', '2/4']);

  const tampered = { ...custom(batch(['f'])), body: Buffer.from(batch(['g'])) };
  assert.equal((await cluster.post(0, '/batch', tampered)).status, 401, 'the signature is over what came');
  const counted = async (result: string) => await cluster.metric('hookonce_elements_total', { route: 'batch', result });
  assert.deepEqual([await counted('claimed'), await counted('left_out')], [5, 5]);
});

test('a failure frees all events of a delivery, and each of them can come again with others', async () => {
  const seen = visits();
  cluster.application.otherwise(answer(500));
  assert.equal((await cluster.post(0, '/batch', custom(batch(['h', 'i'])))).status, 500);
  cluster.application.otherwise(answer(200));
  assert.equal((await cluster.post(1, '/batch', custom(batch(['i', 'j'])))).status, 200);
  assert.equal((await cluster.post(0, '/batch', custom(batch(['h', 'i', 'j'])))).status, 200);
  const all = seen().map((visit) => [idsOf(visit).join(''), mark(visit), visit.attempt]);
  assert.deepEqual(all, [
    ['hi', '2/2', 1],
    ['ij', '2/2', 2],
    ['h', '1/3', 2],
  ]);
});

test('while one of its events runs elsewhere a delivery is never answered with success', async () => {
  const seen = visits();
  const first = held();
  cluster.application.otherwise(first.step);
  const running = cluster.post(0, '/batch', custom(batch(['k', 'l'])));
  await first.arrived;
  const refused = await cluster.post(1, '/batch', custom(batch(['l', 'm'])));
  assert.deepEqual([refused.status, outcome(refused)], [503, 'in-progress']);
  cluster.application.otherwise(answer(200));
  assert.equal((await cluster.post(1, '/batch', custom(batch(['m'])))).status, 200, 'm was given back');
  first.finish();
  assert.equal((await running).status, 200);
  assert.equal((await cluster.post(1, '/batch', custom(batch(['l', 'm'])))).status, 200);
  assert.equal(seen().length, 2);
});

test('a delivery that may wait goes on with what is left, once the other has ended', async () => {
  const seen = visits();
  const first = held();
  cluster.application.otherwise(first.step);
  const running = cluster.post(0, '/waiting', custom(batch(['a', 'b'])));
  await first.arrived;
  const later = cluster.post(1, '/waiting', custom(batch(['b', 'c'])));
  while ((await cluster.metric('hookonce_waiting', { route: 'waiting' })) === 0) await systemClock.sleep(20);
  cluster.application.otherwise(answer(200));
  first.finish();
  assert.deepEqual([(await running).status, (await later).status], [200, 200]);
  assert.deepEqual(seen().map(idsOf), [['a', 'b'], ['c']]);
});

test('LINE: a redelivery that was put together differently brings only what is new', async () => {
  const seen = visits();
  const send = async (again: boolean, ...ids: string[]) => {
    const events = ids.map((id) => ({ type: 'message', webhookEventId: id, deliveryContext: { isRedelivery: again } }));
    const body = Buffer.from(JSON.stringify({ destination: 'U1', events }));
    const signature = Buffer.from(signers.hmacHex(secrets.custom, body), 'hex').toString('base64');
    return await cluster.post(0, '/line', { headers: ['X-Line-Signature', signature], body });
  };
  assert.equal((await send(false, '01A', '01B')).status, 200);
  assert.equal((await send(true, '01B', '01C')).status, 200);
  assert.equal(outcome(await send(true, '01A', '01C')), 'duplicate');
  const verified = await send(false);
  assert.equal(verified.status, 200);
  const [, second, third] = seen();
  assert.deepEqual(
    (JSON.parse(text(second)) as { events: { webhookEventId: string }[] }).events.map((one) => one.webhookEventId),
    ['01C'],
  );
  assert.deepEqual([mark(third!), header(third!.headers, 'hookonce-claim')], [undefined, 'none'], 'without events');
  assert.equal(await cluster.metric('hookonce_identity_missing_total', { route: 'line' }), 1);
});

test('an operator finds one event by its own id, and has it handled again', async () => {
  const seen = visits();
  const ask = async (method: string, path: string) => {
    const { adminUrl } = cluster.gateways[0]!;
    const headers = ['Authorization', `Bearer ${secrets.admin}`];
    return JSON.parse((await exchange(`${adminUrl}${path}`, { method, headers })).body.toString()) as {
      forecast?: { kind: string };
    };
  };
  const forecast = async (id: string) => (await ask('GET', `/-/explain/batch?id=${id}`)).forecast?.kind;
  await cluster.post(0, '/batch', custom(batch(['n', 'o'])));
  assert.deepEqual(
    [await forecast('n'), await forecast('o'), await forecast('p')],
    ['duplicate', 'duplicate', 'forwarded'],
  );
  await ask('POST', '/-/forget/batch?id=n');
  await cluster.post(0, '/batch', custom(batch(['n', 'o', 'p'])));
  const [, second] = seen();
  assert.deepEqual([idsOf(second!), mark(second!), second!.attempt], [['n', 'p'], '2/3', 2]);
});

test('a gateway that dies keeps its elements for the life of their locks; then they come again, marked', async () => {
  await using pair = await startCluster({ nodes: 1, settings: { routes, claims: { ...shortLock, lockTtl: '4s' } } });
  const first = held();
  pair.application.otherwise(first.step);
  const broken = pair.post(0, '/batch', custom(batch(['a', 'b']))).catch(() => undefined);
  await first.arrived;
  await pair.gateways[0]!.child[Symbol.asyncDispose]();
  await broken;
  pair.application.otherwise(answer(200));
  const send = async () => await pair.post(1, '/batch', custom(batch(['b', 'c'])));
  const { ok, replies } = await deliverUntilDone(systemClock, send, { retryAfterScale: 0.2, maxTries: 50 });
  assert.ok(ok && replies[0]!.status === 503);
  const seen = pair.application.visits.map((visit) => [idsOf(visit).join(''), mark(visit), visit.attempt]);
  assert.deepEqual(seen, [
    ['ab', '2/2', 1],
    ['bc', '2/2', 2],
  ]);
  first.finish();
});

test('with a ledger nodes that forget everything change nothing: each element has its row', async () => {
  await using set = await startLedgerCluster({ gateways: 1, settings: { routes } });
  const taken = async (...ids: string[]): Promise<void> => {
    const send = async () => await set.cluster.post(0, '/batch', custom(batch(ids)));
    const { ok } = await deliverUntilDone(systemClock, send, { retryAfterScale: 0.2, maxTries: 200 });
    assert.ok(ok);
  };
  await taken('a', 'b');
  for (const node of set.cluster.nodes) await onNode(node, async (redis) => await redis.flushall());
  await taken('b', 'c', 'a');
  const seen = set.cluster.application.visits.map((visit) => [idsOf(visit).join(''), mark(visit)]);
  assert.deepEqual(seen, [
    ['ab', '2/2'],
    ['c', '1/3'],
  ]);
});

for (const path of ['/batch', '/waiting'])
  test(`storm at ${path}: deliveries that overlap, three gateways, failures, silence${path === '/waiting' ? ', a node that dies' : ''}: each event succeeds once`, async () => {
    const claims = { lockTtl: '20s', unknownHold: '1s', budget: '2s', relyOnWatchdog: true };
    await using storm = await startCluster({
      gateways: 3,
      settings: { ...settings, claims, redis: { timeout: '500ms' } },
    });
    const running = new Set<string>();
    const handled = new Map<string, number>();
    let count = 0;
    storm.application.otherwise(async (visit, socket) => {
      const ids = idsOf(visit);
      for (const id of ids) {
        assert.ok(!running.has(id), `${id} is not handled twice at the same time`);
        running.add(id);
      }
      count += 1;
      await systemClock.sleep(5 + (count % 7) * 5);
      for (const id of ids) running.delete(id);
      if (count % 11 === 0) {
        socket.resetAndDestroy();
        return undefined;
      }
      if (count % 3 === 0) return { status: 500 };
      for (const id of ids) handled.set(id, (handled.get(id) ?? 0) + 1);
      return { status: 200 };
    });

    const all = Array.from({ length: 120 }, (_, n) => `s-${n}`);
    const deliveries = overlapping(all, 90);
    const queue = deliveries.entries();
    const failed: string[] = [];
    const lane = async (): Promise<void> => {
      for (const [n, ids] of queue) {
        if (n === 40 && path === '/waiting') await storm.nodes[2]!.kill();
        const send = async () => await storm.post(n, path, custom(batch(ids)));
        const patience = { retryAfterScale: 0.04, maxTries: 200 };
        const { ok, replies } = await deliverUntilDone(systemClock, send, patience);
        if (!ok) failed.push(replies.map(({ status }) => status).join());
      }
    };
    await Promise.all(Array.from({ length: 24 }, lane));
    assert.deepEqual(failed, [], 'every delivery ends 2xx');
    const sent = new Set(deliveries.flat());
    const wrong = [...sent].filter((id) => handled.get(id) !== 1).map((id) => [id, handled.get(id)]);
    assert.deepEqual(wrong, [], 'each event is handled with success exactly once');
    assert.ok(storm.application.visits.some((visit) => mark(visit) !== undefined && !/^(\d+)\/\1$/.test(mark(visit)!)));
  });

/** Each takes 1 to 12 of the events, those near to one another; always the same ones. */
function overlapping(all: readonly string[], count: number): string[][] {
  let state = 20_261_130;
  const next = (below: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
  return Array.from({ length: count }, () => {
    const from = next(all.length);
    return [...new Set(Array.from({ length: 1 + next(12) }, () => all[(from + next(20)) % all.length]!))];
  });
}
