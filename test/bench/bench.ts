/** Everything that is measured, one after the other on one machine: what is compared was measured side by side. */
import { cpus, loadavg, totalmem } from 'node:os';
import { measureLatency, type Latency } from './latency.ts';
import type { LoadAnswer, LoadTask } from './load.ts';
import { measureMemory, type MemoryUse } from './memory.ts';
import { buildBundle, setStage, startNodes } from './stage.ts';
import { measureTraffic, type Traffic, type WAYS } from './traffic.ts';
import type { Sort, VotesAnswer, VotesTask } from './votes.ts';
import { startWorker } from './worker.ts';

export interface BenchOptions {
  /** Of each comparison. */
  readonly rounds: number;
  readonly roundMs: number;
  /** On which deliveries are sent at full speed. */
  readonly connections: number;
  /** Deliveries, or claims, of each sort before the first round. */
  readonly warmUp: number;
  /** How long deliveries are sent at 100/s. */
  readonly latencyMs: number;
  /** How long an idle gateway is left alone. */
  readonly idleMs: number;
  /** After how many its memory is looked at. */
  readonly deliveries: number;
}

export interface Measured {
  readonly machine: {
    readonly cpu: string;
    readonly cores: number;
    readonly memoryMB: number;
    readonly load: number;
    readonly node: string;
  };
  readonly traffic: Readonly<Record<(typeof WAYS)[number], Traffic>>;
  /** Claims that were taken and ended, per second and round. */
  readonly pairs: Readonly<Record<Sort, readonly number[]>>;
  readonly latency: Latency;
  readonly memory: MemoryUse;
}

/** Claims in flight. */
const AT_ONCE = 100;

export async function bench(options: BenchOptions, say: (line: string) => void): Promise<Measured> {
  const machine = {
    ...{ cpu: cpus()[0]?.model ?? 'unknown', cores: cpus().length, memoryMB: Math.round(totalmem() / 1e6) },
    ...{ load: loadavg()[0]!, node: process.version },
  };
  await using stack = new AsyncDisposableStack();
  const bundle = await buildBundle(stack);
  say('memory');
  const memory = await onStage(bundle, (stage, load) => measureMemory(stage, load, options));
  say('deliveries per second');
  const [traffic, latency] = await onStage(bundle, async (stage, load) => {
    const rates = await measureTraffic(stage, load, options);
    say('latency');
    return [rates, await measureLatency(stage, load, options.latencyMs)] as const;
  });
  say('claims per second');
  return { machine, traffic, pairs: await measurePairs(options), latency, memory };
}

async function onStage<T>(
  bundle: string,
  measure: (
    ...on: [Awaited<ReturnType<typeof setStage>>, ReturnType<typeof startWorker<LoadTask, LoadAnswer>>]
  ) => Promise<T>,
): Promise<T> {
  await using stage = await setStage(bundle);
  await using load = startWorker<LoadTask, LoadAnswer>(new URL('./load.ts', import.meta.url));
  return await measure(stage, load);
}

async function measurePairs({ rounds, roundMs, warmUp }: BenchOptions): Promise<Measured['pairs']> {
  await using stack = new AsyncDisposableStack();
  const redisPorts = (await startNodes(stack)).map(({ port }) => port);
  // Each sort in a process of its own: code that one of them has warmed up, or spoilt, is not the next one's.
  const start = () => stack.use(startWorker<VotesTask, VotesAnswer>(new URL('./votes.ts', import.meta.url)));
  const workers = { claims: start(), redlock: start(), 'redlock, autopipelining': start() };
  const pairs: Record<Sort, number[]> = { claims: [], redlock: [], 'redlock, autopipelining': [] };
  const sorts = Object.keys(pairs) as Sort[];
  const task = { redisPorts, atOnce: AT_ONCE };
  for (const sort of sorts) await workers[sort].run({ ...task, sort, pairs: warmUp });
  for (let round = 0; round < rounds; round += 1) {
    for (const sort of sorts) {
      const answer = await workers[sort].run({ ...task, sort, ms: roundMs });
      pairs[sort].push((answer.pairs / answer.ms) * 1_000);
    }
  }
  return pairs;
}
