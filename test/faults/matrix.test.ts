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
import { sum } from '../support/metrics.ts';
import { backTo, countedAsAnswered, resourcesOf } from './aftermath.ts';
import { faultsOf, strikeBoth, type Fault } from './faults.ts';
import { summaryLine, type Summary } from './history.ts';
import { startTraffic } from './traffic.ts';
import { SET_UPS, startWorld, type SetUp, type World } from './world.ts';

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
  setUp: SetUp,
  strikesIn: (world: World) => readonly ((world: World, random: Random) => Promise<void>)[],
): Promise<Summary> {
  const random = new Random(seed);
  await using world = await startWorld(times, random, setUp);
  const strikes = strikesIn(world);
  const before = await Promise.all(world.gateways.map(resourcesOf));
  await using traffic = startTraffic(world, random);
  const overstayed: string[] = [];
  for (const strike of strikes) {
    await clock.sleep(random.between(100, 400));
    await strike(world, random);
    await world.whole();
    overstayed.push(...(await world.overstayed()));
  }
  const lost = await traffic.end();
  const summary = world.history.check({ answerMs, upstreamMs: times.upstreamMs });
  t.diagnostic(summaryLine(`${name}, seed ${seed}`, strikes.length, summary));
  assert.deepEqual(summary.doubles, [], 'doubles');
  assert.deepEqual(summary.unmarked, [], 'attempts that do not rise');
  assert.deepEqual(summary.losses, [], 'answered 2xx and never handled');
  assert.deepEqual(summary.hangs, [], 'answered too late');
  assert.deepEqual(lost, [], 'never taken');
  assert.deepEqual(overstayed, [], 'locks that live too long');
  assert.ok(summary.events > 50, 'the traffic was there');
  await Promise.all(world.gateways.map(async (gateway, at) => await backTo(gateway, before[at]!)));
  for (const at of world.gateways.keys()) await countedAsAnswered(world, at);
  return summary;
}

function shuffled<T>(list: readonly T[], random: Random): T[] {
  return list
    .map((one) => ({ one, at: random.next() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one);
}

for (const [name, setUp] of Object.entries(SET_UPS)) {
  test(`every fault, one after the other, under traffic: ${name}`, { timeout: 900_000 }, async (t) => {
    for (let seed = firstSeed; seed < firstSeed + (full ? 5 : 1); seed += 1) {
      await run(t, `every fault, ${name}`, seed, setUp, (world) =>
        some(shuffled(faultsOf(world), new Random(seed)), name).map(({ name: fault, strike }) => async (...given) => {
          const fromMs = clock.now();
          await strike(...given);
          t.diagnostic(`${fromMs.toFixed(0)}–${clock.now().toFixed(0)}: ${fault}`);
        }),
      );
    }
  });

  const [seeds, pairs] = full ? [5, 12] : [name === 'three Redis' ? 1 : 0, 4];
  // The long run has them all.
  if (seeds === 0) continue;
  test(`pairs of faults at the same time, under traffic: ${name}`, { timeout: 1_200_000 }, async (t) => {
    for (let seed = firstSeed; seed < firstSeed + seeds; seed += 1) {
      const random = new Random(seed);
      await run(t, `pairs of faults, ${name}`, seed, setUp, (world) => {
        const possible = faultsOf(world);
        return Array.from({ length: pairs }, () => {
          const pair = [random.pick(possible), random.pick(possible)] as const;
          return async (...given: [World, Random]) => {
            const fromMs = clock.now();
            await strikeBoth(pair, ...given);
            t.diagnostic(
              `${fromMs.toFixed(0)}–${clock.now().toFixed(0)}: ${pair.map((fault) => fault.name).join(' and ')}`,
            );
          };
        });
      });
    }
  });
}

/** Where the set-up is not the usual one, the short run takes a few of them: those first that it alone has. */
function some(all: readonly Fault[], name: string): readonly Fault[] {
  const own = ({ name: fault }: Fault): boolean => /the cluster|^as many/.test(fault);
  return full || name === 'three Redis' ? all : [...all.filter(own), ...all.filter((each) => !own(each))].slice(0, 6);
}

test('the voters restarted one after the other with their files, each waited for: no delivery is turned away', async (t) => {
  const random = new Random(firstSeed);
  const patient = { lockTtlMs: 2_000, budgetMs: 650, redisMs: 250, upstreamMs: 600 };
  await using world = await startWorld(patient, random);
  await using traffic = startTraffic(world, random);
  for (const node of world.nodes) {
    await clock.sleep(200);
    await node.kill();
    await node.start();
    await world.whole();
  }
  assert.deepEqual(await traffic.end(), []);
  const summary = world.history.check({ answerMs, upstreamMs: patient.upstreamMs });
  t.diagnostic(summaryLine('rolling restart', world.nodes.length, summary));
  assert.deepEqual([summary.doubles, summary.unmarked, summary.losses, summary.hangs], [[], [], [], []]);
  // A node that is killed breaks its connections; silent is only one that a busy machine does not let run, and with it
  // and the one that restarts there is no majority for that moment.
  const pages = await Promise.all(world.gateways.map(async (gateway) => await gateway.metrics()));
  const silences = sum(pages, 'hookonce_voter_errors_total', { class: 'timeout' });
  assert.ok(
    silences === 0 ? summary.unavailable === 0 : summary.unavailable < 5,
    `${summary.unavailable} turned away, ${silences} silences`,
  );
});

test('all voters restarted empty at once: the service is back by itself, and says what it does not remember', async (t) => {
  const random = new Random(firstSeed);
  await using world = await startWorld(times, random);
  await using traffic = startTraffic(world, random);
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
