/** Copies of events in one process, whose claims and ends are the test's: only the waiting is real. */
import type { DeliveryKey, Done, Outcome } from '../../src/core/delivery.ts';
import { InFlight, type Lead, type Led } from '../../src/core/in-flight.ts';
import type { Claims, Standing } from '../../src/core/ports.ts';
import type { InFlight as Policy, Route } from '../../src/core/route.ts';
import { reply } from './fake-upstream.ts';
import { ManualClock } from './manual-clock.ts';
import { recordedEvents } from './recorded-events.ts';

const times = { lockTtlMs: 20_000, unknownHoldMs: 30_000, maxHoldMs: 900_000 };

export const done: Done = { status: 200, traceId: '', reply: undefined, wallMs: 1_790_000_000_000 };

/** Ends of leading, by what the spine makes of them. */
export const ends = {
  delivered: { kind: 'ended', outcome: { kind: 'delivered', reply: reply(200), attempt: 1 }, done },
  doneBefore: { kind: 'ended', outcome: { kind: 'duplicate', done }, done },
  refused: ended({ kind: 'refused', reply: reply(500), attempt: 1 }),
  unreachable: ended({ kind: 'unreachable', message: 'refused', attempt: 1 }),
  unavailable: ended({ kind: 'unavailable' }),
  overloaded: ended({ kind: 'overloaded', limit: 'waiting' }),
  expired: ended({ kind: 'in-progress', retryAfterMs: 0, split: true }),
  uncertain: ended({ kind: 'uncertain', how: 'timeout', attempt: 1 }),
} as const satisfies Record<string, Led>;

function ended(outcome: Outcome): Extract<Led, { kind: 'ended' }> {
  return { kind: 'ended', outcome, done: undefined };
}

export function heldElsewhere(leftMs = 15_000, more: { unknown?: boolean; split?: boolean } = {}): Led {
  return { kind: 'held', leftMs, unknown: false, split: false, ...more };
}

export interface Copy {
  readonly name: string;
  /** How it was answered; undefined: not yet. */
  outcome(): Outcome | undefined;
  /** Kind of `outcome()`. */
  kind(): string | undefined;
  /** Whether it leads now. */
  leads(): boolean;
  /** Has won its claim, and goes on to the application. */
  forwards(): Promise<void>;
  /** Ends its leading. */
  end(led: Led): Promise<void>;
  fail(error: Error): Promise<void>;
  /** What `pass` threw. */
  error(): unknown;
}

export interface Process {
  readonly clock: ManualClock;
  /** Who has been called to lead, in order. */
  readonly turns: readonly string[];
  /** When. */
  readonly turnsMs: readonly number[];
  /** When an event was peeked at. */
  readonly peeks: readonly number[];
  /** What the next peeks find; the last is found again and again. */
  standing(...found: readonly (Standing | Error)[]): void;
  copy(name: string, policy?: Partial<Policy>, event?: string): Promise<Copy>;
  copies(names: string, policy?: Partial<Policy>): Promise<Copy[]>;
  /** How many wait, by the events that were told. */
  waiting(): number;
  warnings(): number;
}

export function startProcess(seed = 1): Process {
  const clock = new ManualClock(seed);
  const events = recordedEvents();
  const turns: string[] = [];
  const turnsMs: number[] = [];
  const peeks: number[] = [];
  let found: readonly (Standing | Error)[] = [{ kind: 'held', leftMs: 15_000, unknown: false }];
  const peek = async (): Promise<Standing> => {
    peeks.push(clock.now());
    const standing = found[0]!;
    if (found.length > 1) found = found.slice(1);
    if (standing instanceof Error) throw standing;
    return standing;
  };
  const inFlight = new InFlight({ peek } as unknown as Claims, times, clock, events);

  const copy: Process['copy'] = async (name, policy, event = 'event') => {
    let outcome: Outcome | undefined;
    let error: unknown;
    let turn: PromiseWithResolvers<Led> | undefined;
    let forward = (): void => {};
    const lead: Lead = async (forwarding) => {
      forward = forwarding;
      turns.push(name);
      turnsMs.push(clock.now());
      turn = Promise.withResolvers();
      return await turn.promise;
    };
    const route = { name: 'route', inFlight: { policy: 'wait', waitMs: 4_000, maxWaiters: 32, ...policy } } as Route;
    inFlight.pass({ id: event } as DeliveryKey, route, lead).then(
      (given) => void (outcome = given),
      (thrown: unknown) => void (error = thrown),
    );
    const close = async (finish: (of: PromiseWithResolvers<Led>) => void): Promise<void> => {
      if (turn === undefined) throw new Error(`${name} does not lead`);
      const ending = turn;
      turn = undefined;
      finish(ending);
      await clock.settle();
    };
    await clock.settle();
    return {
      name,
      outcome: () => outcome,
      kind: () => outcome?.kind,
      leads: () => turn !== undefined,
      forwards: async () => {
        forward();
        await clock.settle();
      },
      end: async (led) => await close((of) => of.resolve(led)),
      fail: async (reason) => await close((of) => of.reject(reason)),
      error: () => error,
    };
  };
  return {
    ...{ clock, turns, turnsMs, peeks, copy },
    standing: (...next) => void (found = next),
    copies: async (names, policy) => {
      const made: Copy[] = [];
      for (const name of names) made.push(await copy(name, policy));
      return made;
    },
    waiting: () => events.of('waiting').reduce((sum, [, change]) => sum + change, 0),
    warnings: () => events.of('warn').length,
  };
}
