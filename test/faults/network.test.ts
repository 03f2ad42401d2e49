import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { until } from '../../src/demo/until.ts';
import { held } from '../support/application.ts';
import { startCluster, votersUp, type Cluster } from '../support/cluster.ts';
import { shortLock } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';

let cluster: Cluster;
before(
  async () =>
    void (cluster = await startCluster({ proxied: true, settings: { claims: { ...shortLock, unknownHold: '1s' } } })),
);
after(async () => await cluster[Symbol.asyncDispose]());

const deliver = (id: string, n = 0) => cluster.post(n, '/github', github(id));
const patience = { retryAfterScale: 0.2, maxTries: 100 };

/** The network is whole again, and every gateway has noticed. */
async function healed(): Promise<void> {
  for (const proxy of cluster.proxies) proxy.heal();
  for (const gateway of cluster.gateways) await votersUp(gateway, 3);
}

/** Ten events and a copy of each. */
async function delivered(name: string): Promise<void> {
  for (let n = 0; n < 10; n += 1) {
    assert.equal((await deliver(`${name}-${n}`)).status, 200);
    assert.equal(outcome(await deliver(`${name}-${n}`, 1)), 'duplicate');
    assert.equal(cluster.application.of(`${name}-${n}`).length, 1);
  }
}

test('one node whose answers are lost', async () => {
  cluster.proxies[2]!.loseReplies();
  await delivered('lost-replies');
  await healed();
});

test('one node that answers after its deadline', async () => {
  cluster.proxies[1]!.delay(300);
  await delivered('late-replies');
  await healed();
});

test('one node that cannot be reached', async () => {
  cluster.proxies[0]!.cut();
  await delivered('cut');
  await healed();
});

test('two nodes that do as they are told and cannot say so: 503, and the event is delivered once they can', async () => {
  const lost = [cluster.proxies[1]!, cluster.proxies[2]!];
  for (const proxy of lost) proxy.loseReplies();
  const reply = await deliver('mute');
  assert.deepEqual([reply.status, outcome(reply)], [503, 'unavailable']);
  assert.equal(cluster.application.of('mute').length, 0);
  await healed();
  const { ok } = await deliverUntilDone(systemClock, () => deliver('mute', 1), patience);
  assert.ok(ok);
  assert.equal(cluster.application.of('mute').length, 1);
});

test('the network is gone when the application succeeds: the sender hears it, and the completion is caught up', async () => {
  const work = held();
  cluster.application.script('caught-up', work.step);
  const first = deliver('caught-up');
  await work.arrived;
  for (const proxy of cluster.proxies) proxy.cut();
  work.finish();
  assert.equal((await first).status, 200);
  await until(systemClock, 'a completion that is pending', async () =>
    (await cluster.metric('hookonce_completions_pending')) === 1 ? true : undefined,
  );
  await healed();
  await until(systemClock, 'a completion that is done', async () =>
    (await cluster.metric('hookonce_completions_pending')) === 0 ? true : undefined,
  );
  assert.equal(outcome(await deliver('caught-up', 1)), 'duplicate');
  assert.equal(cluster.application.of('caught-up').length, 1);
});
