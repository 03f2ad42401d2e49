/** Async mode from the sender to the application, on real parts. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { allHeaders, header } from '../../src/core/delivery.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held } from '../support/application.ts';
import { eager, startAsyncCluster, type Store } from '../support/async.ts';
import { routes } from '../support/config.ts';
import { custom, github, outcome, stripe } from '../support/deliveries.ts';

const stripeRoute = routes.find(({ name }) => name === 'stripe')!;

for (const store of ['Redis', 'PostgreSQL'] satisfies Store[]) {
  suite(`async mode, the queue on ${store}`, () => {
    test('202 once it is queued; the application gets it once, with the bytes and headers that came', async () => {
      await using cluster = await startAsyncCluster({ store, gateways: 2 });
      const body = Buffer.from([123, 34, 97, 34, 58, 34, 195, 188, 34, 125]);
      const message = { ...github('evt_1', body) };
      const headers = [...message.headers, 'X-Twice', 'a', 'x-twice', 'b', 'Hookonce-Attempt', '9'];
      const first = await cluster.post(0, '/github?x=%2F..', { ...message, headers });
      assert.deepEqual([first.status, outcome(first)], [202, 'accepted']);
      await until(clock, 'the delivery', async () => (cluster.application.of('evt_1').length > 0 ? true : undefined));
      for (const n of [0, 1]) {
        const copy = await cluster.post(n, '/github', message);
        assert.deepEqual([copy.status, outcome(copy)], [200, 'duplicate']);
      }
      const visits = cluster.application.of('evt_1');
      assert.equal(visits.length, 1);
      const [visit] = visits;
      assert.deepEqual(Buffer.from(visit!.body), body);
      assert.equal(visit!.target, '/github?x=%2F..');
      assert.equal(header(visit!.headers, 'x-hub-signature-256'), header(message.headers, 'x-hub-signature-256'));
      assert.deepEqual(allHeaders(visit!.headers, 'x-twice'), ['a', 'b']);
      assert.deepEqual(allHeaders(visit!.headers, 'hookonce-attempt'), ['1']);
      await until(clock, 'the metric', async () =>
        (await cluster.metric('hookonce_queue_attempts_total', { result: 'delivered' })) === 1 ? true : undefined,
      );
      assert.equal(await cluster.metric('hookonce_deliveries_total', { outcome: 'accepted' }), 1);
      assert.equal(await cluster.metric('hookonce_enqueues_total', { result: 'queued' }), 1);
    });

    test('an application that fails is tried again, with the same bytes, until it succeeds', async () => {
      await using cluster = await startAsyncCluster({ store, gateways: 2, queue: eager });
      cluster.application.script('evt_2', answer(500), answer(503), answer(200));
      const message = custom('{"id":"evt_2","text":"ü"}');
      assert.equal((await cluster.post(0, '/custom/x', message)).status, 202);
      await until(clock, 'the third try', async () =>
        cluster.application.of('evt_2').length === 3 ? true : undefined,
      );
      const visits = cluster.application.of('evt_2');
      assert.deepEqual(
        visits.map((visit) => header(visit.headers, 'hookonce-attempt')),
        ['1', '2', '3'],
      );
      for (const visit of visits) {
        assert.deepEqual(Buffer.from(visit.body), message.body);
        assert.equal(header(visit.headers, 'x-signature'), header(message.headers, 'x-signature'));
      }
      const copy = await cluster.post(1, '/custom/x', message);
      assert.deepEqual([copy.status, outcome(copy)], [200, 'duplicate']);
    });
  });
}

test('the age of a signature is judged at the door, and not again by the worker', async () => {
  await using cluster = await startAsyncCluster({
    gateways: 1,
    nodes: 1,
    queue: { attempts: 5, backoff: { first: '2s', max: '2s' } },
    settings: { routes: [{ ...stripeRoute, tolerance: '1s' }] },
  });
  const body = '{"id":"evt_3"}';
  cluster.application.script('evt_3', answer(500));
  assert.equal((await cluster.post(0, '/stripe', stripe(body))).status, 202);
  await until(clock, 'the second try', async () => (cluster.application.of('evt_3').length === 2 ? true : undefined));
});

test('a copy that comes while the first is worked on is a duplicate at once: it lies in the queue', async () => {
  await using cluster = await startAsyncCluster({
    gateways: 1,
    nodes: 1,
    settings: { route: { inFlight: { policy: 'wait' } } },
  });
  const work = held();
  cluster.application.script('evt_4', work.step);
  assert.equal((await cluster.post(0, '/github', github('evt_4'))).status, 202);
  await work.arrived;
  const copy = await cluster.post(0, '/github', github('evt_4'));
  assert.deepEqual([copy.status, outcome(copy)], [200, 'duplicate']);
  work.finish();
});
