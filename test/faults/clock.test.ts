/** Wall clocks that step, on real processes: of a voter, and of a gateway. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { startGateway } from '../../src/demo/gateway.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { Random } from '../simulation/random.ts';
import { held, scriptedApplication } from '../support/application.ts';
import { clockShim } from '../support/clock-shim.ts';
import { post, votersUp } from '../support/cluster.ts';
import { gatewayConfig, secretFiles, shortLock } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';
import { program } from '../support/program.ts';
import { summaryLine } from './history.ts';
import { startTraffic } from './traffic.ts';
import { SET_UPS, startWorld } from './world.ts';

const HOUR = 3_600_000;
const shim = clockShim();
test.after(() => shim[Symbol.dispose]());

test('the clock of one voter steps forward and back under traffic: told, on hold for its locks, nothing twice', async (t) => {
  const random = new Random(1);
  const times = { lockTtlMs: 2_000, budgetMs: 650, redisMs: 250, upstreamMs: 600 };
  await using world = await startWorld(times, random, SET_UPS['three Redis'], (node) =>
    node === 0 ? shim.env : process.env,
  );
  await using traffic = startTraffic(world, random);
  // The first gateway that sees it has the voter say so to the others.
  const told = (): string[] =>
    world.gateways.flatMap(({ child }) => child.lines.filter((line) => line.includes('has stepped')));
  for (const [ahead, seen] of [
    [HOUR, /"stepMs":3[56]\d{5}\b/],
    [-HOUR, /"stepMs":-7[12]\d{5}\b/],
    [0, /"stepMs":3[56]\d{5}\b/],
  ] as const) {
    await clock.sleep(500);
    const before = told();
    shim.ahead(ahead);
    await until(
      clock,
      `a step to ${ahead} to be told`,
      () => told().some((line) => !before.includes(line) && seen.test(line)) || undefined,
    );
    await world.whole();
  }
  assert.deepEqual(await traffic.end(), []);
  const summary = world.history.check({ answerMs: 10_000, upstreamMs: times.upstreamMs });
  t.diagnostic(summaryLine('a clock that steps', 3, summary));
  assert.deepEqual([summary.doubles, summary.unmarked, summary.losses, summary.hangs], [[], [], [], []]);
});

test('the clock of a gateway steps while it holds an event: its locks and its memory go by another', async () => {
  await using application = await scriptedApplication();
  await using redis = await startRedisServer();
  const config = gatewayConfig(application.url, [redis.url], { claims: shortLock });
  const given = { config, files: secretFiles };
  await using stepped = await startGateway({ ...program, node: shim.node }, clock, given);
  await using other = await startGateway(program, clock, given);
  for (const gateway of [stepped, other]) await votersUp(gateway, 1);
  for (const [step, ahead] of [24 * HOUR, -48 * HOUR, 0].entries()) {
    const id = `step-${step}`;
    const work = held();
    application.script(id, work.step);
    const first = post(stepped, '/github', github(id));
    await work.arrived;
    shim.ahead(ahead);
    // Longer than the lock lives: it is renewed by a clock that does not step.
    await clock.sleep(1_500);
    assert.equal(outcome(await post(other, '/github', github(id))), 'in-progress');
    work.finish();
    assert.equal((await first).status, 200);
    for (const gateway of [stepped, other])
      assert.equal(outcome(await post(gateway, '/github', github(id))), 'duplicate');
    assert.equal(application.of(id).length, 1);
    const { time } = JSON.parse(stepped.child.lines.at(-1)!) as { time: number };
    assert.ok(Math.abs(time - clock.wall() - ahead) < HOUR, 'the step has reached the process');
  }
});
