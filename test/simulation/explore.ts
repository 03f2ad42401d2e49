/** Many runs, shared out to worker threads; each may work on code with a rule taken out. */
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { addCounts, type Counts } from './counts.ts';

export interface Exploration {
  readonly voters: number;
  readonly firstSeed: number;
  readonly runs: number;
  readonly profile?: string | undefined;
  /** Name of the rule that is taken out. */
  readonly mutation?: string | undefined;
  /** Ends at the lowest seed that fails: the same one, however many workers there are. */
  readonly untilFound?: boolean;
  /** Threads that share the work; as many as there are processors, up to two, unless said otherwise. */
  readonly workers?: number | undefined;
}

/** One worker's part of an exploration. */
export interface Share extends Exploration {
  /** Every how many-th seed from `firstSeed` on. */
  readonly step: number;
  /** The lowest seed found so far, by any worker. */
  readonly lowest: BigInt64Array;
}

export interface Found {
  readonly seed: number;
  readonly profile: string;
  readonly violations: readonly string[];
  /** What happened, line by line; told of the first that a worker has found. */
  readonly trace: readonly string[];
}

export interface Findings {
  runs: number;
  /** By seed. */
  readonly found: Found[];
  readonly counts: Counts;
  readonly profiles: Record<string, number>;
}

export async function explore(exploration: Exploration): Promise<Findings> {
  const step = exploration.workers ?? Math.min(2, availableParallelism());
  const lowest = new BigInt64Array(new SharedArrayBuffer(8));
  lowest[0] = BigInt(Number.MAX_SAFE_INTEGER);
  const shares = Array.from({ length: step }, async (_, index) => {
    return await inWorker({
      ...exploration,
      firstSeed: exploration.firstSeed + index,
      runs: exploration.runs - index,
      step,
      lowest,
    });
  });
  const [total, ...rest] = await Promise.all(shares);
  for (const share of rest) add(total!, share);
  total!.found.sort((a, b) => a.seed - b.seed);
  return total!;
}

async function inWorker(share: Share): Promise<Findings> {
  const { promise, resolve, reject } = Promise.withResolvers<Findings>();
  const worker = new Worker(new URL('./explore-worker.ts', import.meta.url), {
    workerData: share,
    // Everything of a run dies young: collecting it late costs less.
    resourceLimits: { maxYoungGenerationSizeMb: 96 },
  });
  worker.once('message', resolve);
  worker.once('error', (error: Error) => {
    const { mutation: rule } = share;
    reject(rule === undefined ? error : new Error(`without the rule "${rule}": ${error.message}`, { cause: error }));
  });
  worker.once('exit', () => reject(new Error('a worker ended without a word')));
  return await promise;
}

function add(total: Findings, share: Findings): void {
  total.runs += share.runs;
  total.found.push(...share.found);
  addCounts(total.counts, share.counts);
  for (const [name, runs] of Object.entries(share.profiles)) total.profiles[name] = (total.profiles[name] ?? 0) + runs;
}
