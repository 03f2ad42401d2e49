/**
 * What happened in a run on real processes, and whether it may have (the promises of `src/README.md`):
 *
 * - **once**: an event that was handled with success is not forwarded again, and no two attempts run at the same time,
 *   unless the earlier one ended in silence: its gateway was dead, asleep, or cut off from the voters for longer than a
 *   lock lives, while it ran or right after; or the application answered too late; or a majority of the voters forgot.
 * - **marked**: attempts rise, so the application reads 1 once. Excused where a majority forgot.
 * - **no loss**: nobody hears 2xx before the application has succeeded. No excuse.
 * - **no hang**: every answer comes in time. Excused while the gateway that was asked slept or died.
 * - **the end**: when everything works again, every event is taken.
 */

/** One run of the application over one attempt. All times are monotonic milliseconds. */
export interface Execution {
  readonly event: string;
  readonly gateway: number;
  readonly attempt: number;
  readonly startedMs: number;
  endedMs: number | undefined;
  status: number | undefined;
}

/** One request to a gateway; without a status when its connection broke. */
export interface Exchange {
  readonly event: string;
  readonly gateway: number;
  readonly startedMs: number;
  readonly endedMs: number;
  readonly status: number | undefined;
  readonly outcome: string | undefined;
}

/** A time in which promises are void: of one gateway, or of all. */
export interface Excuse {
  /** `starved`: asleep because the machine let it not run. */
  readonly kind: 'cut off' | 'asleep' | 'starved' | 'dead' | 'forgotten';
  readonly gateway: number | 'all';
  readonly fromMs: number;
  untilMs: number;
}

export interface Limits {
  /** Every answer comes within it. */
  readonly answerMs: number;
  /** After that the application's answer is too late to count for certain. */
  readonly upstreamMs: number;
}

export interface Summary {
  readonly deliveries: number;
  readonly events: number;
  readonly forwards: number;
  readonly repeats: number;
  readonly unavailable: number;
  /** How often a gateway was not let run by a busy machine. */
  readonly starved: number;
  readonly doubles: readonly string[];
  readonly unmarked: readonly string[];
  readonly losses: readonly string[];
  readonly hangs: readonly string[];
}

/** A completion is tried at once; what breaks later than this after the answer excuses nothing. */
const SETTLED_MS = 500;

export class History {
  readonly executions: Execution[] = [];
  readonly exchanges: Exchange[] = [];
  readonly excuses: Excuse[] = [];

  excuse(kind: Excuse['kind'], gateway: Excuse['gateway'], fromMs: number, untilMs: number): void {
    this.excuses.push({ kind, gateway, fromMs, untilMs });
  }

  check(limits: Limits): Summary {
    const doubles: string[] = [];
    const unmarked: string[] = [];
    const byEvent = Map.groupBy(this.executions, ({ event }) => event);
    for (const [event, runs] of byEvent) {
      runs.sort((a, b) => a.startedMs - b.startedMs);
      for (const [at, later] of runs.entries()) {
        for (const earlier of runs.slice(0, at)) {
          if (this.#isDouble(earlier, later, limits)) doubles.push(`${event}: ${told(earlier)}, then ${told(later)}`);
          if (later.attempt <= earlier.attempt && !this.#forgotten(earlier, later))
            unmarked.push(`${event}: ${told(earlier)}, then ${told(later)}`);
        }
      }
    }
    return {
      ...{ doubles, unmarked },
      deliveries: this.exchanges.length,
      events: new Set(this.exchanges.map(({ event }) => event)).size,
      forwards: this.executions.length,
      repeats: this.executions.filter(({ attempt }) => attempt > 1).length,
      starved: this.excuses.filter(({ kind }) => kind === 'starved').length,
      unavailable: this.exchanges.filter(({ outcome }) => outcome === 'unavailable').length,
      losses: this.exchanges.flatMap((one) =>
        isSuccess(one.status) && !this.#succeededBefore(one, byEvent) ? [toldExchange(one)] : [],
      ),
      hangs: this.exchanges.flatMap((one) =>
        one.endedMs - one.startedMs > limits.answerMs &&
        !this.#excused(one.gateway, one.startedMs, one.endedMs, ['asleep', 'starved', 'dead'])
          ? [toldExchange(one)]
          : [],
      ),
    };
  }

  #isDouble(earlier: Execution, later: Execution, { upstreamMs }: Limits): boolean {
    const failed = earlier.status !== undefined && !isSuccess(earlier.status) && earlier.endedMs! <= later.startedMs;
    if (failed) return false;
    const tookMs = (earlier.endedMs ?? Infinity) - earlier.startedMs;
    if (tookMs > upstreamMs || this.#forgotten(earlier, later)) return false;
    return !this.#excused(earlier.gateway, earlier.startedMs, (earlier.endedMs ?? earlier.startedMs) + SETTLED_MS, [
      'cut off',
      'asleep',
      'starved',
      'dead',
    ]);
  }

  #forgotten(earlier: Execution, later: Execution): boolean {
    return this.#excused('all', earlier.startedMs, later.startedMs, ['forgotten']);
  }

  #excused(gateway: Excuse['gateway'], fromMs: number, untilMs: number, kinds: readonly Excuse['kind'][]): boolean {
    return this.excuses.some(
      (excuse) =>
        kinds.includes(excuse.kind) &&
        (excuse.gateway === 'all' || excuse.gateway === gateway) &&
        excuse.fromMs <= untilMs &&
        excuse.untilMs >= fromMs,
    );
  }

  #succeededBefore({ event, endedMs }: Exchange, byEvent: ReadonlyMap<string, readonly Execution[]>): boolean {
    return byEvent.get(event)?.some((run) => isSuccess(run.status) && run.endedMs! <= endedMs) === true;
  }
}

const isSuccess = (status: number | undefined): boolean => status !== undefined && status >= 200 && status < 300;
const told = (run: Execution): string =>
  `attempt ${run.attempt} by ${run.gateway} at ${run.startedMs.toFixed(0)}–${run.endedMs?.toFixed(0) ?? ''} → ${run.status ?? 'nothing'}`;
const toldExchange = (one: Exchange): string =>
  `${one.event} by ${one.gateway} at ${one.startedMs.toFixed(0)}–${one.endedMs.toFixed(0)} → ${one.status ?? 'nothing'} ${one.outcome ?? ''}`;

/** One line for people. */
export function summaryLine(what: string, faults: number, s: Summary): string {
  return `${what}: ${s.deliveries} deliveries of ${s.events} events, ${faults} faults, ${s.forwards} forwards (${s.repeats} marked as repeated), ${s.unavailable} answered 503 for want of a quorum, ${s.starved} times a gateway could not run; doubles unexcused ${s.doubles.length}, unmarked ${s.unmarked.length}, losses ${s.losses.length}, hangs ${s.hangs.length}`;
}
