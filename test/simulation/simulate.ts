/**
 * `npm run simulate`: the simulation by hand.
 *
 *     npm run simulate -- --runs 100000 --first 1        many seeds, N = 3 and N = 5
 *     npm run simulate -- --seed 17 --voters 3 --trace   one seed, and what happened in it
 *     npm run simulate -- --mutations --runs 1500        every rule taken out in turn: how often it is missed
 *     npm run simulate -- --mutations --mutation 'confirm skipped' --runs 20000
 *     npm run simulate -- --mutation 'confirm skipped' --seed 17 --voters 3 --trace
 *
 * `--profile NAME` looks at one kind of runs only, `--workers 1` leaves the other processors alone. Ends with 1 when a promise was broken, or a missing rule not missed.
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
    workers: { type: 'string' },
  },
});
const sizes = values.voters === undefined ? [3, 5] : [Number(values.voters)];
const { profile, mutation } = values;
const firstSeed = Number(values.first);
const runs = Number(values.runs);
const workers = values.workers === undefined ? undefined : Number(values.workers);

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
  const findings = await explore({ voters, firstSeed, runs, profile, mutation, workers });
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
    if (mutation !== undefined && mutation !== name) continue;
    const where = profile ?? own;
    const { found } = await explore({ voters, firstSeed, runs, profile: where, mutation: name, workers });
    const [first] = found;
    const told = first ? `${first.seed} | ${first.violations[0]}` : `– | ${belt ?? 'not found'}`;
    console.log(`| ${name} | ${rule} | ${where ?? 'all kinds'} | ${found.length} in ${runs} | ${told} |`);
    allMissed &&= first !== undefined || belt !== undefined;
  }
  return allMissed;
}

function totals(counts: Findings['counts'] | Findings['profiles']): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}
