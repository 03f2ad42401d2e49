/** Gateways that die or are asked to end while copies of an event are in flight. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { exchange, type Reply } from '../../src/demo/exchange.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held, type Held } from '../support/application.ts';
import { post, startCluster, votersUp, type Cluster } from '../support/cluster.ts';
import { shortLock } from '../support/config.ts';
import { github, outcome, retryAfter } from '../support/deliveries.ts';
import { copiesWaiting, inFlightRoutes } from '../support/in-flight-routes.ts';
import { eventKeys, onNode } from '../support/keys.ts';

const lockTtlMs = 3_000;
const settings = { routes: inFlightRoutes, claims: { ...shortLock, lockTtl: '3s', budget: '500ms' } };

let cluster: Cluster;
before(async () => void (cluster = await startCluster({ gateways: 1, settings })));
after(async () => await cluster[Symbol.asyncDispose]());

/** A delivery that the application is working on, at a gateway of its own that will not see the end of it. */
async function inFlightAt(
  gateway: Gateway,
  route: string,
  id: string,
): Promise<{ work: Held; reply: Promise<Reply | undefined> }> {
  const work = held();
  cluster.application.script(id, work.step, answer(200));
  const reply = post(gateway, `/${route}`, github(id)).catch(() => undefined);
  await work.arrived;
  return { work, reply };
}

const attempts = (id: string) => cluster.application.of(id).map(({ attempt }) => attempt);
const told = (reply: Reply | undefined): string => (reply ? `${reply.status} ${outcome(reply) ?? 'relayed'}` : 'none');

/** Delivers until it is not turned away any more; every answer before says when to come again. */
async function untilForwarded(send: () => Promise<Reply>): Promise<Reply> {
  return await until(systemClock, 'a lock that has run out', async () => {
    const reply = await send();
    if (outcome(reply) !== 'in-progress') return reply;
    assert.equal(reply.status, 503);
    assert.ok(retryAfter(reply) >= 1 && retryAfter(reply) <= lockTtlMs / 1000, `Retry-After: ${retryAfter(reply)}`);
    return undefined;
  });
}

/** Resolves when a gateway has begun to drain. */
async function draining(gateway: Gateway): Promise<void> {
  const ready = async () => (await exchange(`${gateway.adminUrl}/readyz`)).status === 200;
  await until(systemClock, 'a gateway that drains', async () => ((await ready()) ? undefined : true));
}

suite('crashes', { concurrency: true }, () => {
  test('B05: after kill -9 the event is free when the lock has run out, and not before', async () => {
    const gateway = await cluster.gateway();
    const { work, reply } = await inFlightAt(gateway, 'reject', 'D2');
    const { key } = cluster.application.of('D2')[0]!;
    for (const node of cluster.nodes) {
      const lock = (await eventKeys(node, 'ho')).find((name) => name.endsWith(`${key}:l`));
      if (lock === undefined) continue; // the claim was won by the two others
      const leftMs = await onNode(node, (redis) => redis.pttl(lock));
      assert.ok(leftMs > 0 && leftMs <= lockTtlMs, `${leftMs} ms`);
    }
    const killedMs = systemClock.now();
    const restarted = gateway.restart(); // kills it first
    assert.equal(await reply, undefined);
    const early = await cluster.post(0, '/reject', github('D2'));
    assert.equal(early.status, 503);
    const late = await untilForwarded(async () => await cluster.post(0, '/reject', github('D2')));
    assert.equal(told(late), '200 relayed');
    assert.ok(systemClock.now() - killedMs > lockTtlMs / 2, 'two thirds of its life were left at least');
    await restarted;
    await votersUp(gateway, 3);
    assert.equal(told(await post(gateway, '/reject', github('D2'))), '200 duplicate');
    assert.deepEqual(attempts('D2'), [1, 2]);
    work.finish();
  });

  test('kill -9 while copies wait elsewhere: one of them takes over, as attempt 2, and the others are duplicates', async () => {
    const gateway = await cluster.gateway();
    const { work } = await inFlightAt(gateway, 'wait', 'taken-over');
    const copies = [1, 2, 3].map(async () => await cluster.post(0, '/wait', github('taken-over')));
    await copiesWaiting(cluster.gateways, 'wait', 3);
    await gateway.child[Symbol.asyncDispose]();
    assert.deepEqual((await Promise.all(copies)).map(told).sort(), ['200 duplicate', '200 duplicate', '200 relayed']);
    assert.deepEqual(attempts('taken-over'), [1, 2]);
    work.finish();
  });

  test('kill -9 while copies wait for less than the lock lives: 503 with Retry-After until then', async () => {
    const gateway = await cluster.gateway();
    const { work } = await inFlightAt(gateway, 'brief', 'impatient');
    await gateway.child[Symbol.asyncDispose]();
    const first = await cluster.post(0, '/brief', github('impatient'));
    assert.equal(told(first), '503 in-progress');
    assert.equal(
      told(await untilForwarded(async () => await cluster.post(0, '/brief', github('impatient')))),
      '200 relayed',
    );
    assert.deepEqual(attempts('impatient'), [1, 2]);
    work.finish();
  });

  test('SIGTERM while copies wait: each is told what became of the first, and the process ends with 0', async () => {
    const gateway = await cluster.gateway();
    const { work, reply } = await inFlightAt(gateway, 'wait', 'ends-in-time');
    const copies = [1, 2, 3].map(async () => await post(gateway, '/wait', github('ends-in-time')));
    await copiesWaiting([gateway], 'wait', 3);
    const ended = gateway.terminate();
    await draining(gateway);
    work.finish();
    assert.equal(told(await reply), '200 relayed');
    assert.deepEqual((await Promise.all(copies)).map(told), Array(3).fill('200 duplicate'));
    assert.deepEqual(await ended, { code: 0, signal: null });
  });

  test('SIGTERM while copies wait for another gateway: they are told to come again at the end of their wait', async () => {
    const gateway = await cluster.gateway();
    const work = held();
    cluster.application.script('goes-on', work.step);
    const first = cluster.post(0, '/brief', github('goes-on'));
    await work.arrived;
    const copies = [1, 2].map(async () => await post(gateway, '/brief', github('goes-on')));
    await copiesWaiting([gateway], 'brief', 2);
    const ended = gateway.terminate();
    assert.deepEqual((await Promise.all(copies)).map(told), Array(2).fill('503 in-progress'));
    assert.deepEqual(await ended, { code: 0, signal: null });
    work.finish();
    assert.equal(told(await first), '200 relayed');
    assert.deepEqual(attempts('goes-on'), [1]);
  });
});
