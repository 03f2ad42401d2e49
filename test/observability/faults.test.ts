/**
 * Every panel and every alert, asked of a real Prometheus that scrapes real gateways under traffic with faults. Of an
 * alert the expression is judged here, without the time for which it must hold (`test/alerts` has that): after each
 * fault those become true that must, and no other.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held } from '../support/application.ts';
import { votersUp } from '../support/cluster.ts';
import { onNode } from '../support/keys.ts';
import { rules } from '../alerts/rules.ts';
import { asked, dashboard, panels } from './dashboard-file.ts';
import { picture } from './picture.ts';
import { startStage, type Stage } from './stage.ts';

const stack = new AsyncDisposableStack();
let stage: Stage;
before(async () => {
  stage = stack.use(await startStage());
});
after(async () => await stack.disposeAsync());

/** They tell of the machine's load, which these tests do not choose. */
const OF_LOAD = ['HookonceClaimsSlow', 'HookonceEventLoopBlocked'];

/** The alerts whose expression is true now. */
async function raised(): Promise<string[]> {
  const found = await Promise.all(
    rules
      .filter(({ alert }) => !OF_LOAD.includes(alert))
      .map(async ({ alert, expr }) => ((await stage.prometheus.query(expr)).length > 0 ? [alert] : [])),
  );
  return found.flat().sort();
}

/** What `fault` raises beside what was raised before; resolves as soon as it is `expected`, and stays so. */
async function raises(fault: () => Promise<unknown>, expected: readonly string[]): Promise<void> {
  await stage.prometheus.scraped();
  const before = await raised();
  await fault();
  const added = async (): Promise<string> => (await raised()).filter((alert) => !before.includes(alert)).join();
  let last = '';
  await until(systemClock, `the alerts ${expected.join()}`, async () => {
    last = await added();
    return last === expected.toSorted().join() ? true : undefined;
  }).catch(() => undefined);
  assert.equal(last, expected.toSorted().join());
  await stage.prometheus.scraped();
  assert.equal(await added(), expected.toSorted().join(), 'a scrape later');
}

test('good traffic raises nothing', async () => {
  await raises(async () => {
    await stage.many('/sync', 'good', 20);
    await stage.many('/jobs', 'good', 10);
    await stage.deliver('/sync', 'good-1');
    await stage.deliver('/watched', 'good-1');
    await stage.deliver('/watched', 'good-1');
  }, []);
  assert.deepEqual(await raised(), []);
});

test('a configuration with faults', async () => {
  await raises(() => stage.configure(0, { routes: [] }), ['HookonceConfigRefused']);
  await raises(() => stage.configure(0, { drain: { delay: '1s' } }), []);
});

test('a setting that only a restart brings', async () => {
  await raises(() => stage.configure(1, { service: 'another' }), ['HookonceRestartNeeded']);
  await stage.configure(1, {});
});

test('a voter that is full', async () => {
  const [, voter] = stage.voters;
  await raises(async () => {
    await onNode(voter!, (redis) => redis.config('SET', 'maxmemory', '1mb'));
    await stage.many('/sync', 'full', 10);
  }, ['HookonceVoterFull']);
  await onNode(voter!, (redis) => redis.config('SET', 'maxmemory', '0'));
});

test('one voter down', async () => {
  await raises(async () => {
    await stage.voters[0]!.kill();
    await stage.many('/sync', 'one-voter-down', 5);
  }, ['HookonceVoterNotCounted']);
  await stage.voters[0]!.start();
});

test('a voter that drops keys', async () => {
  const [voter] = stage.voters;
  await raises(
    () => onNode(voter!, (redis) => redis.config('SET', 'maxmemory-policy', 'allkeys-lru')),
    ['HookonceVoterMayForget'],
  );
  await onNode(voter!, (redis) => redis.config('SET', 'maxmemory-policy', 'noeviction'));
});

test('wrong signatures', async () => {
  await raises(() => stage.many('/sync', 'wrong', 20, 'another-secret'), ['HookonceSignaturesRejected']);
});

test('a limit reached', async () => {
  const work = held();
  stage.application.otherwise(work.step);
  await raises(async () => {
    const some = Promise.all(Array.from({ length: 20 }, (_, n) => stage.deliver('/sync', `crowd-${n}`)));
    await work.arrived;
    // Those that found no place are answered while the others are still being worked on.
    await until(systemClock, 'deliveries without a place', async () => {
      const [refused] = await stage.prometheus.query('sum(hookonce_deliveries_total{outcome="overloaded"})');
      return refused!.value > 0 ? true : undefined;
    });
    work.finish();
    await some;
  }, ['HookonceOverloaded']);
  stage.application.otherwise(answer(200));
});

test('the ledger down', async () => {
  await raises(async () => {
    await stage.ledger.kill();
    await stage.many('/sync', 'no-ledger', 5);
  }, ['HookonceLedgerDown', 'HookonceLedgerBehind']);
  await stage.ledger.start();
});

test('the queue down', async () => {
  await raises(() => stage.queue.kill(), ['HookonceQueueDown']);
  await stage.queue.start();
});

test('events that fail for good in the queue', async () => {
  await until(systemClock, 'the queue', async () =>
    (await stage.prometheus.query('min(hookonce_queue_up) == 1')).length > 0 ? true : undefined,
  );
  stage.application.otherwise(answer(500));
  await raises(() => stage.many('/jobs', 'dead', 2), ['HookonceDeadLetters']);
  stage.application.otherwise(answer(200));
});

test('an application that fails', async () => {
  stage.application.otherwise(answer(500));
  await raises(() => stage.many('/sync', 'fails', 60), ['HookonceApplicationFailing']);
  stage.application.otherwise(answer(200));
});

test('a sender that repeats itself', async () => {
  await stage.deliver('/open', 'again');
  await raises(async () => {
    for (let n = 0; n < 30; n++) await Promise.all([1, 2, 3, 4].map(() => stage.deliver('/open', 'again')));
  }, ['HookonceDuplicateSurge']);
});

test('an application that is not there', async () => {
  await stage.application.down();
  await raises(
    () => stage.many('/sync', 'not-there', 80),
    ['HookonceDeliveriesFailing', 'HookonceDeliveriesFailingSlowly'],
  );
  await stage.application.up();
});

test('no quorum: a route that rejects waits, one that forwards goes on without a claim', async () => {
  for (const gateway of stage.gateways) await votersUp(gateway, 3);
  await raises(async () => {
    await Promise.all([stage.voters[1]!.kill(), stage.voters[2]!.kill()]);
    await stage.deliver('/sync', 'no-quorum');
    assert.equal((await stage.deliver('/open', 'no-quorum')).status, 200);
  }, ['HookonceQuorumLost', 'HookonceUnclaimedForwards', 'HookonceVoterNotCounted']);
});

test('every panel has an answer', async () => {
  await stage.many('/sync', 'last', 2);
  await stage.prometheus.scraped();
  const empty: string[] = [];
  const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));
  for (const { title, expr } of [
    ...queries,
    ...dashboard.annotations.list.map((one) => ({ title: 'starts', ...one })),
  ]) {
    const found = await stage.prometheus.query(asked(expr, '15m', '15m'));
    if (!found.some(({ value }) => !Number.isNaN(value))) empty.push(`${title}: ${expr}`);
  }
  assert.deepEqual(empty, []);
});

test('the picture of the dashboard is drawn from what Prometheus answers', async () => {
  const png = await picture(stage.prometheus, ['Are events handled once?', 'Voters'], 60);
  assert.deepEqual([...png.subarray(0, 4)], [0x89, 0x50, 0x4e, 0x47]);
  assert.ok(png.length > 50_000, `${png.length} bytes`);
});

test('every alert compares what is there: without its threshold each has an answer', async () => {
  const empty: string[] = [];
  for (const { alert, expr } of rules)
    for (const [selector] of expr.matchAll(/\b(?:hookonce|nodejs)_\w+(?:\{[^}]*\})?/g))
      if ((await stage.prometheus.query(`count(${selector})`)).length === 0) empty.push(`${alert}: ${selector}`);
  assert.deepEqual(empty, []);
});
