/**
 * Faults on real processes under traffic, and a checker over everything that happened. The short run strikes with every
 * fault once; `HOOKONCE_TEST_FULL=1` goes on with more seeds, and with pairs of faults. A run is repeated by its seed:
 * `HOOKONCE_FAULTS_SEED=7`, as far as real processes can repeat anything.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import { Random } from '../simulation/random.ts';
import { onNode } from '../support/keys.ts';
import { faults, type Fault } from './faults.ts';
import { summaryLine, type Summary } from './history.ts';
import { startTraffic } from './traffic.ts';
import { startWorld, type World } from './world.ts';

const full = process.env['HOOKONCE_TEST_FULL'] === '1';
const firstSeed = Number(process.env['HOOKONCE_FAULTS_SEED'] ?? 1);
const times = { lockTtlMs: 1_000, budgetMs: 300, redisMs: 100, upstreamMs: 600 };
/** Waiting, two budgets, a slot, the application, three voters (protocol section 10); and what a busy machine adds. */
const answerMs = 300 + 2 * times.budgetMs + 2_000 + times.upstreamMs + 3 * times.redisMs + 5_000;

/** Strikes with one after the other under traffic, each when everything has come back from the one before. */
async function run(
  t: TestContext,
  name: string,
  seed: number,
  strikes: readonly ((world: World, random: Random) => Promise<void>)[],
  faultCount: number,
): Promise<Summary> {
  const random = new Random(seed);
  await using world = await startWorld(times, random);
  const traffic = startTraffic(world, random);
  const overstayed: string[] = [];
  for (const strike of strikes) {
    await clock.sleep(random.between(100, 400));
    await strike(world, random);
    await world.whole();
    overstayed.push(...(await world.overstayed()));
  }
  const lost = await traffic.end();
  const summary = world.history.check({ answerMs, upstreamMs: times.upstreamMs });
  t.diagnostic(summaryLine(`${name}, seed ${seed}`, faultCount, summary));
  assert.deepEqual(summary.doubles, [], 'doubles');
  assert.deepEqual(summary.unmarked, [], 'attempts that do not rise');
  assert.deepEqual(summary.losses, [], 'answered 2xx and never handled');
  assert.deepEqual(summary.hangs, [], 'answered too late');
  assert.deepEqual(lost, [], 'never taken');
  assert.deepEqual(overstayed, [], 'locks that live too long');
  assert.ok(summary.events > 50, 'the traffic was there');
  return summary;
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  return list
    .map((one) => ({ one, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one);
}

test('every fault, one after the other, under traffic', { timeout: 600_000 }, async (t) => {
  for (let seed = firstSeed; seed < firstSeed + (full ? 5 : 1); seed += 1) {
    const strikes = shuffled(faults, new Random(seed)).map(
      ({ name, strike }) =>
        async (world: World, random: Random) => {
          const fromMs = clock.now();
          await strike(world, random);
          if (full) t.diagnostic(`${(clock.now() - fromMs).toFixed(0)} ms: ${name}`);
        },
    );
    await run(t, 'every fault', seed, strikes, faults.length);
  }
});

test('pairs of faults at the same time, under traffic', { skip: !full, timeout: 1_200_000 }, async (t) => {
  for (let seed = firstSeed; seed < firstSeed + 5; seed += 1) {
    const random = new Random(seed);
    const pairs = Array.from({ length: 12 }, () => [random.pick(faults), random.pick(faults)] as const);
    const strikes = pairs.map((pair) => async (world: World, each: Random) => {
      const fromMs = clock.now();
      await Promise.all(pair.map(async ({ strike }) => await strike(world, each)));
      await world.whole();
      // Two nodes in trouble are a majority, and what both forgot may be gone.
      if (pair.every(touchesNodes)) world.history.excuse('cut off', 'all', fromMs, clock.now());
      if (pair.every(forgets)) world.history.excuse('forgotten', 'all', fromMs, clock.now());
    });
    await run(t, 'pairs of faults', seed, strikes, 2 * pairs.length);
  }
});

const touchesNodes = ({ name }: Fault): boolean => !name.startsWith('one gateway');
const forgets = ({ name }: Fault): boolean =>
  /killed and started|flushed$/.test(name) && touchesNodes({ name } as Fault);

test('the voters restarted one after the other with their files, each waited for: no delivery is turned away', async (t) => {
  const random = new Random(firstSeed);
  const patient = { lockTtlMs: 2_000, budgetMs: 650, redisMs: 250, upstreamMs: 600 };
  await using world = await startWorld(patient, random);
  const traffic = startTraffic(world, random);
  for (const node of world.nodes) {
    await clock.sleep(200);
    await node.kill();
    await node.start();
    await world.whole();
  }
  assert.deepEqual(await traffic.end(), []);
  const summary = world.history.check({ answerMs, upstreamMs: patient.upstreamMs });
  t.diagnostic(summaryLine('rolling restart', world.nodes.length, summary));
  assert.deepEqual(
    [summary.unavailable, summary.doubles, summary.unmarked, summary.losses, summary.hangs],
    [0, [], [], [], []],
  );
});

test('all voters restarted empty at once: the service is back by itself, and says what it does not remember', async (t) => {
  const random = new Random(firstSeed);
  await using world = await startWorld(times, random);
  const traffic = startTraffic(world, random);
  await clock.sleep(500);
  const fromMs = clock.now();
  for (const node of world.nodes) {
    await onNode(node, async (redis) => await redis.flushall());
    await node.kill();
  }
  await Promise.all(world.nodes.map(async (node) => await node.start()));
  const startedMs = clock.now();
  await world.whole();
  const backMs = clock.now() - startedMs;
  world.history.excuse('forgotten', 'all', fromMs, clock.now());
  const lost = await until(clock, 'memory loss in the metrics', async () => {
    const pages = await Promise.all(world.gateways.map(async (gateway) => await gateway.metrics()));
    return pages.some((page) => /hookonce_memory_lost_total\{[^}]*\} [1-9]/.test(page)) || undefined;
  });
  assert.ok(lost);
  assert.deepEqual(await traffic.end(), []);
  const summary = world.history.check({ answerMs, upstreamMs: times.upstreamMs });
  t.diagnostic(`${summaryLine('all restarted empty', 3, summary)}; back after ${backMs.toFixed(0)} ms`);
  assert.deepEqual([summary.doubles, summary.losses, summary.hangs], [[], [], []]);
  // recoverAfter, the lock hold, and the probes in between.
  assert.ok(backMs < 1_000 + 2_012 + 8_000, `${backMs} ms`);
});
