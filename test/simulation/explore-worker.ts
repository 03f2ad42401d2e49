/** One worker of `explore.ts`: takes the rule out, if one is to be, and only then loads the code under test. */
import { enableCompileCache } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';
import type { Findings, Share } from './explore.ts';
import { addCounts, noCounts } from './counts.ts';
import { mutationCalled } from './mutations.ts';
import { applyPatches } from './patch.ts';

/** So many runs are under way at a time: they share the turns of the event loop, which cost more than most events. */
const ABREAST = 8;

Error.stackTraceLimit = 0;
// Reading the code takes longer than most searches: what was not changed is read once for all workers.
enableCompileCache();
const { voters, firstSeed, runs, profile, mutation: name, untilFound, step, lowest } = workerData as Share;
const mutation = mutationCalled(name);
applyPatches(mutation?.patches ?? []);

const { run } = await import('./run.ts');
const ordered = mutation?.unordered !== true;
const findings: Findings = { runs: 0, found: [], counts: noCounts(), profiles: {} };
let seed = firstSeed;

async function series(): Promise<void> {
  while (seed < firstSeed + runs && !(untilFound === true && BigInt(seed) > Atomics.load(lowest, 0))) {
    const mine = seed;
    seed += step;
    const result = await run({ seed: mine, voters, profile, ordered });
    findings.runs += 1;
    findings.profiles[result.profile] = (findings.profiles[result.profile] ?? 0) + 1;
    addCounts(findings.counts, result.counts);
    if (result.violations.length === 0) continue;
    const trace: string[] = [];
    const again = { seed: mine, voters, profile, ordered, trace: (line: string): unknown => trace.push(line) };
    if (findings.found.length === 0) await run(again);
    findings.found.push({ seed: mine, profile: result.profile, violations: result.violations, trace });
    if (BigInt(mine) < Atomics.load(lowest, 0)) Atomics.store(lowest, 0, BigInt(mine));
  }
}

await Promise.all(Array.from({ length: ABREAST }, series));
parentPort!.postMessage(findings);
