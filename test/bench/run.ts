/**
 * `npm run bench`: how fast, how large, how much later, as a table; `--json FILE` writes every number. Under three minutes
 * unless asked for more: `--rounds N`, `--deliveries N` (before the second look at memory; 100000 for the real one).
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { providePrograms } from '../setup/programs.ts';
import { bench } from './bench.ts';
import { rateTable, resultTable } from './table.ts';
import { results, verdict } from './targets.ts';

const { values } = parseArgs({
  options: {
    json: { type: 'string' },
    rounds: { type: 'string', default: '5' },
    deliveries: { type: 'string', default: '20000' },
  },
});
const complaint = await providePrograms();
if (complaint !== undefined) {
  console.error(complaint);
  process.exit(2);
}

const measured = await bench(
  {
    ...{ rounds: Number(values.rounds), roundMs: 2_000, connections: 64, warmUp: 10_000 },
    ...{ latencyMs: 15_000, idleMs: 3_000, deliveries: Number(values.deliveries) },
  },
  (line) => console.error(`measuring: ${line}`),
);
const all = results(measured);
const { cpu, cores, load, node } = measured.machine;
console.log(`${cores} × ${cpu}, Node ${node}, load ${load.toFixed(1)} before\n`);
console.log(`${rateTable(measured)}\n\n${resultTable(all)}`);
if (load > cores / 2) console.log('\nThe machine was busy with something else: measure again when it is not.');
if (values.json !== undefined) {
  const json = { ...measured, results: all.map((result) => ({ ...result, verdict: verdict(result) })) };
  writeFileSync(values.json, `${JSON.stringify(json, undefined, 2)}\n`);
}
