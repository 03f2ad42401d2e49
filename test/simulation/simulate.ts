/**
 * `npm run simulate`: the simulation by hand.
 *
 *     npm run simulate -- --runs 100000 --first 1        many seeds, N = 3 and N = 5
 *     npm run simulate -- --seed 17 --voters 3 --trace   one seed, and what happened in it
 *     npm run simulate -- --mutations --runs 20000       every rule taken out in turn: after how many runs it is missed
 *     npm run simulate -- --mutation 'confirm skipped' --seed 17 --voters 3 --trace
 *
 * `--profile NAME` looks at one kind of runs only. Ends with 1 when a promise was broken, or a missing rule not missed.
 */
import { parseArgs } from 'node:util';
import { explore, type Findings } from './explore.ts';
import { MUTATIONS, mutationCalled } from './mutations.ts';
import { applyPatches } from './patch.ts';

const { values } = parseArgs({
  options: {
    voters: { type: 'string' },
    runs: { type: 'string', default: '10000' },
    first: { type: 'string', default: '1' },
    seed: { type: 'string' },
    profile: { type: 'string' },
    mutation: { type: 'string' },
    mutations: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
  },
});
const sizes = values.voters === undefined ? [3, 5] : [Number(values.voters)];
const { profile, mutation } = values;
const firstSeed = Number(values.first);
const runs = Number(values.runs);

let fine = true;
if (values.mutations) fine = await withoutEachRule();
else
  for (const voters of sizes)
    fine = (values.seed === undefined ? await many(voters) : await one(voters, Number(values.seed))) && fine;
process.exitCode = fine ? 0 : 1;

async function one(voters: number, seed: number): Promise<boolean> {
  const without = mutationCalled(mutation);
  applyPatches(without?.patches ?? []);
  const { run } = await import('./run.ts');
  const trace = values.trace ? (line: string): void => console.log(line) : undefined;
  const result = await run({ seed, voters, profile, trace, ordered: without?.unordered !== true });
  console.log(
    `seed ${seed}, N = ${voters}, ${result.profile}: ${result.violations.join('\n') || 'every promise kept'}`,
  );
  return result.violations.length === 0;
}

async function many(voters: number): Promise<boolean> {
  const begun = performance.now();
  const findings = await explore({ voters, firstSeed, runs, profile, mutation });
  const seconds = (performance.now() - begun) / 1000;
  console.log(
    `N = ${voters}: ${findings.runs} runs in ${seconds.toFixed(0)} s, ${findings.found.length} with a broken promise`,
  );
  for (const found of findings.found.slice(0, 20))
    console.log(`  seed ${found.seed}, ${found.profile}: ${found.violations[0]}`);
  console.log(`  ${totals(findings.counts)}`);
  console.log(`  runs: ${totals(findings.profiles)}`);
  return findings.found.length === 0;
}

async function withoutEachRule(): Promise<boolean> {
  let allMissed = true;
  for (const { name, rule, profile: own, voters, belt } of MUTATIONS) {
    const findings = await explore({
      voters,
      firstSeed,
      runs,
      profile: profile ?? own,
      mutation: name,
      untilFound: true,
    });
    const [found] = findings.found;
    const where = `N = ${voters}, ${profile ?? own ?? 'all kinds'}`;
    if (found) console.log(`| ${name} | ${rule} | ${where} | ${found.seed - firstSeed + 1} | ${found.violations[0]} |`);
    else console.log(`| ${name} | ${rule} | ${where} | not in ${findings.runs} | |`);
    allMissed &&= found !== undefined || belt !== undefined;
  }
  return allMissed;
}

function totals(counts: Findings['counts'] | Findings['profiles']): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
