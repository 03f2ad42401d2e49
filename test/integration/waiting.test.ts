/** Copies of an event in flight, over two gateways. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { exchange, type Reply } from '../../src/demo/exchange.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held } from '../support/application.ts';
import { post, startCluster, type Cluster } from '../support/cluster.ts';
import { github, outcome, retryAfter } from '../support/deliveries.ts';
import { copiesWaiting, inFlightRoutes } from '../support/in-flight-routes.ts';

let cluster: Cluster;
before(async () => void (cluster = await startCluster({ settings: { routes: inFlightRoutes } })));
after(async () => await cluster[Symbol.asyncDispose]());

/** `201 delivered`, `503 in-progress`… */
const told = (reply: Reply): string => `${reply.status} ${outcome(reply) ?? 'relayed'}`;

/** How many replies were told what. */
function tally(replies: readonly Reply[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const reply of replies) counts[told(reply)] = (counts[told(reply)] ?? 0) + 1;
  return counts;
}

const copies = (id: string, route: string, count: number): Promise<Reply>[] =>
  Array.from({ length: count }, async (_, n) => await cluster.post(n, `/${route}`, github(id)));

function assertOneAtATime(id: string, attempts: number): void {
  const visits = cluster.application.of(id);
  assert.deepEqual(
    visits.map(({ beside }) => beside),
    Array(attempts).fill(0),
    'never two at once',
  );
  const numbers = visits.map(({ attempt }) => attempt);
  assert.equal(numbers[0], 1);
  assert.ok(
    numbers.every((number, n) => n === 0 || number > numbers[n - 1]!),
    `attempts rise: ${numbers.join()}`,
  );
}

test('300 events, each delivered five times at the same instant over two gateways: every copy gets 2xx in its first answer', async () => {
  cluster.application.otherwise(async () => {
    await systemClock.sleep(100 + systemClock.random() * 200);
    return { status: 200 };
  });
  const ids = Array.from({ length: 300 }, (_, n) => `storm-${n}`);
  const queue = ids.values();
  const replies: Reply[] = [];
  const lane = async (): Promise<void> => {
    for (const id of queue) replies.push(...(await Promise.all(copies(id, 'wait', 5))));
  };
  await Promise.all(Array.from({ length: 60 }, lane));
  cluster.application.otherwise(answer(200));

  assert.deepEqual(tally(replies), { '200 relayed': 300, '200 duplicate': 1200 });
  const wrong = ids.filter(
    (id) =>
      cluster.application
        .of(id)
        .map(({ attempt }) => attempt)
        .join() !== '1',
  );
  assert.deepEqual(wrong, [], 'each is forwarded once, as attempt 1');
});

test('an application that fails three times and then works: it sees one copy at a time, and the event ends done', async () => {
  cluster.application.script('fails', answer(500), answer(500), answer(500));
  assert.deepEqual(tally(await Promise.all(copies('fails', 'wait', 10))), {
    ...{ '500 relayed': 3, '200 relayed': 1, '200 duplicate': 6 },
  });
  assert.deepEqual(tally(await Promise.all(copies('fails', 'wait', 10))), { '200 duplicate': 10 });
  assertOneAtATime('fails', 4);
});

test('the same, when copies are turned away instead: ten copies at each of four steps', async () => {
  const steps = [500, 500, 500, 200].map((status) => ({ status, work: held() }));
  cluster.application.script('fails-slowly', ...steps.map(({ work }) => work.step));
  for (const { status, work } of steps) {
    const sent = copies('fails-slowly', 'reject', 10);
    const early: Reply[] = [];
    for (const copy of sent) void copy.then((reply) => early.push(reply));
    await work.arrived;
    await until(systemClock, 'nine that are turned away', () => (early.length === 9 ? true : undefined));
    assert.deepEqual(tally(early), { '503 in-progress': 9 });
    work.finish({ status });
    assert.deepEqual(tally(await Promise.all(sent)), { '503 in-progress': 9, [`${status} relayed`]: 1 });
  }
  assert.deepEqual(tally(await Promise.all(copies('fails-slowly', 'reject', 10))), { '200 duplicate': 10 });
  assertOneAtATime('fails-slowly', 4);
});

test('a copy that has waited for as long as it may is told when to come again, and the first goes on', async () => {
  const work = held();
  cluster.application.script('slow', work.step);
  const first = cluster.post(0, '/brief', github('slow'));
  await work.arrived;
  const startedMs = systemClock.now();
  const replies = await Promise.all([0, 1].map((n) => cluster.post(n, '/brief', github('slow'))));
  assert.ok(systemClock.now() - startedMs >= 700);
  assert.deepEqual(tally(replies), { '503 in-progress': 2 });
  for (const reply of replies) assert.ok(retryAfter(reply) >= 10 && retryAfter(reply) <= 20, `${retryAfter(reply)}`);
  work.finish();
  assert.equal((await first).status, 200);
  assert.equal(told(await cluster.post(1, '/brief', github('slow'))), '200 duplicate');
  assert.equal(cluster.application.of('slow').length, 1);
});

test('policy accept: a copy is taken at once, though the first may yet fail', async () => {
  const work = held();
  cluster.application.script('accepted', work.step);
  const first = cluster.post(0, '/accept', github('accepted'));
  await work.arrived;
  assert.deepEqual(tally(await Promise.all(copies('accepted', 'accept', 2))), { '200 in-progress': 2 });
  work.finish({ status: 500 });
  assert.equal((await first).status, 500);
  assert.equal(told(await cluster.post(1, '/accept', github('accepted'))), '200 relayed');
  assertOneAtATime('accepted', 2);
});

test('how many copies wait is shown', async () => {
  const work = held();
  cluster.application.script('shown', work.step);
  const sent = copies('shown', 'wait', 5);
  await copiesWaiting(cluster.gateways, 'wait', 4);
  assert.equal(await cluster.metric('hookonce_waiting', { route: 'wait' }), 4);
  assert.equal(await cluster.metric('hookonce_waiting', { route: 'brief' }), 0);
  work.finish();
  await Promise.all(sent);
  assert.equal(await cluster.metric('hookonce_waiting'), 0);
});

test('a client that is gone while it waits changes nothing: its copy takes its turn, and its result counts', async () => {
  const [first, second] = [held(), held()];
  cluster.application.script('gone', first.step, second.step);
  const [gateway] = cluster.gateways as [(typeof cluster.gateways)[number]];
  const leader = post(gateway, '/wait', github('gone'));
  await first.arrived;
  const leaving = new AbortController();
  const gone = exchange(`${gateway.url}/wait`, { method: 'POST', ...github('gone') }, { signal: leaving.signal });
  await copiesWaiting([gateway], 'wait', 1);
  const last = post(gateway, '/wait', github('gone'));
  await copiesWaiting([gateway], 'wait', 2);
  leaving.abort();
  await assert.rejects(gone);

  first.finish({ status: 500 });
  assert.equal((await leader).status, 500);
  await second.arrived;
  await copiesWaiting([gateway], 'wait', 1);
  second.finish({ status: 200 });
  assert.equal(told(await last), '200 duplicate');
  await copiesWaiting([gateway], 'wait', 0);
  assertOneAtATime('gone', 2);
});
