/** One run: a seed becomes a plan, the plan a world, and the history of that world is judged. */
import RedlockClass from 'redlock';
import { Application } from './application.ts';
import type { Counts } from './counts.ts';
import { planFor } from './draw.ts';
import { Faults } from './faults.ts';
import { EVENT, Gateway } from './gateway.ts';
import { History } from './history.ts';
import { VoterNode } from './node.ts';
import { Random } from './random.ts';
import { Scheduler } from './scheduler.ts';
import { Sender } from './sender.ts';

export interface RunOptions {
  readonly seed: number;
  readonly voters: number;
  /** Only this kind of runs. */
  readonly profile?: string | undefined;
  /** Receives what happens, line by line. */
  readonly trace?: ((line: string) => unknown) | undefined;
  /** Whether connections deliver in order, as TCP does; so they do unless said otherwise. */
  readonly ordered?: boolean | undefined;
}

export interface RunResult {
  readonly profile: string;
  readonly violations: readonly string[];
  readonly counts: Counts;
}

// The package draws its tokens from the system's randomness; here they come from the seed of the run that is under way.
let current: Tokens;
const redlock = RedlockClass as unknown as { readonly prototype: { _random: () => string } };
if (typeof redlock.prototype._random !== 'function') throw new Error('redlock makes its tokens in another way now');
redlock.prototype._random = () => current.next();

/** Tokens for the rounds of claims. One mutation says which claim a round belongs to, and gets its first token again. */
class Tokens {
  readonly #random: Random;
  readonly #first = new WeakMap<object, string>();

  constructor(random: Random) {
    this.#random = random;
  }

  next(): string {
    const { claimUnderWay } = globalThis as { claimUnderWay?: object };
    if (claimUnderWay === undefined) return this.#random.word();
    const token = this.#first.get(claimUnderWay) ?? this.#random.word();
    this.#first.set(claimUnderWay, token);
    return token;
  }
}

export async function run(options: RunOptions): Promise<RunResult> {
  const { seed, voters, trace } = options;
  const random = new Random(seed * 16 + voters);
  const plan = { ...planFor(random, voters, options.profile), ordered: options.ordered !== false };
  const scheduler = new Scheduler();
  const line = (who: string, text: string): void =>
    void trace?.(`${scheduler.now().toFixed(1).padStart(9)}  ${who.padEnd(8)} ${text}`);
  const nodes = Array.from({ length: voters }, (_, index) => new VoterNode(index, plan, scheduler, random));
  const history = new History(plan, nodes, () => scheduler.now(), trace && line);
  const application = new Application(plan, scheduler, random, history);
  let started = 0;
  const start = (): Gateway => {
    started += 1;
    return new Gateway(`g${started}`, plan, nodes, application, history, scheduler, random);
  };
  const tokens = new Tokens(random);
  current = tokens;
  const gateways = Array.from({ length: plan.gateways }, start);
  const faults = new Faults(plan, nodes, gateways, start, history, scheduler, random);
  history.afterRan = (link, batch) => faults.ran(link, batch);

  let unsatisfied = plan.copies.length;
  let broken: Error | undefined;
  for (const copy of plan.copies) {
    const sender = new Sender(copy, plan, gateways, scheduler, random);
    sender.untilSuccess().then(
      () => (unsatisfied -= 1),
      (error: unknown) => (broken = error as Error),
    );
  }
  const over = (): boolean =>
    history.violations.length > 0 ||
    broken !== undefined ||
    (unsatisfied === 0 && scheduler.now() >= plan.calmAtMs && !gateways.some((gateway) => gateway.completing));
  const longestMs = Math.max(plan.lockTtlMs, plan.unknownHoldMs);
  // Learning may have to wait for the right to copy, which another gateway has left behind.
  const limitMs =
    plan.calmAtMs + 20_000 + plan.recoverAfterMs + plan.upstreamTimeoutMs + plan.maxWaitMs + 4 * longestMs;
  await scheduler.run(over, limitMs, () => (current = tokens)).catch((error: unknown) => (broken = error as Error));
  if (broken) history.violation(`0 ${broken.stack ?? broken.message}`);
  if (history.violations.length === 0) history.ends(unsatisfied === 0, EVENT);
  return { profile: plan.profile, violations: history.violations, counts: history.counts };
}
