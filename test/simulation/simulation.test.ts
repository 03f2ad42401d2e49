import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { explore } from './explore.ts';
import { MUTATIONS } from './mutations.ts';
import { patched } from './patch.ts';
import { run } from './run.ts';

/** Lines of a trace in front of the broken promise. */
const SHOWN = 150;

/** Enough for every kind of runs some hundred times; `npm run simulate` looks further. */
for (const [voters, runs] of [
  [3, 30_000],
  [5, 20_000],
] as const) {
  test(`N = ${voters}: every promise is kept in ${runs} seeded runs`, { timeout: 900_000 }, async () => {
    const { found, runs: done } = await explore({ voters, firstSeed: 1, runs });
    const told = found
      .slice(0, 10)
      .map(({ seed, violations }) => `${violations[0]}: npm run simulate -- --voters ${voters} --seed ${seed} --trace`);
    const trace = found.find((one) => one.trace.length > 0)?.trace.slice(-SHOWN) ?? [];
    assert.equal(found.length, 0, [...told, ...trace].join('\n'));
    assert.equal(done, runs);
  });
}

test('twenty copies at one instant over four gateways, one of three voters away: one forward, attempt 1, nobody left behind', async () => {
  const { found, counts } = await explore({ voters: 3, profile: 'twenty at once', firstSeed: 1, runs: 500 });
  assert.deepEqual(found, []);
  assert.equal(counts.forwards, 500);
});

test('a seed is one schedule, alone and among others', async () => {
  const traceOf = async (seed: number): Promise<string[]> => {
    const lines: string[] = [];
    await run({ seed, voters: 3, trace: (line) => lines.push(line) });
    return lines;
  };
  const seeds = [1, 2, 3, 4, 5, 6, 7, 8];
  const together = await Promise.all(seeds.map(traceOf));
  for (const seed of seeds.reverse()) assert.deepEqual(await traceOf(seed), together[seed - 1]);
});

for (const { name, rule, voters, profile, quickly: runs, seed: firstSeed = 1 } of MUTATIONS) {
  if (runs === undefined) continue;
  test(`without its rule a promise is broken: ${name} (protocol ${rule})`, { timeout: 900_000 }, async () => {
    const { found } = await explore({ voters, profile, firstSeed, runs, mutation: name, untilFound: true, workers: 1 });
    const [first] = found;
    assert.ok(first, `nothing in ${runs} runs from seed ${firstSeed} on`);
    assert.ok(
      first.trace.some((line) => line.endsWith(`VIOLATION ${first.violations[0]}`)),
      `seed ${first.seed} is another run when it is replayed`,
    );
  });
}

test('every rule can be taken out of the code as it is', () => {
  for (const { name, patches } of MUTATIONS) {
    const texts = new Map<string, string>();
    for (const patch of patches) {
      const text = texts.get(patch.file) ?? readFileSync(new URL(`../../${patch.file}`, import.meta.url), 'utf8');
      assert.doesNotThrow(() => texts.set(patch.file, patched(text, patch)), `the rule "${name}" reads otherwise now`);
    }
  }
});

test('a rule that was rewritten is not left unproven in silence', () => {
  const patch = { file: 'a.ts', find: 'if (a.isOurs(b, c)) return;', put: ';' };
  assert.equal(patched('x();\nif (\n  a.isOurs(\n    b,\n    c,\n  )\n)\n  return;\ny();', patch), 'x();\n;\ny();');
  assert.throws(() => patched('if (a.isMine(b, c)) return;', patch), /0 places in a.ts/);
  assert.throws(() => patched('if (a.isOurs(b, c)) return; if (a.isOurs(b, c)) return;', patch), /2 places in a.ts/);
});
