/**
 * Virtual time. Events happen one at a time, in the order of their instants; between two of them everything that the
 * code under test can do without time passing (its promises) is done. So one seed is one schedule.
 *
 * An event may belong to a process. A process that lapses (a long garbage collection, SIGSTOP) sees its events late;
 * one that died sees them no more.
 */
import type { Cancel } from '../../src/core/ports.ts';

export interface Process {
  dead: boolean;
  /** Until then it sees nothing. */
  lapsedUntilMs: number;
  /** What it sees first when it comes back: its timers, or what has arrived meanwhile. */
  timersFirst: boolean;
}

interface Event {
  atMs: number;
  readonly order: number;
  run: (() => void) | undefined;
  readonly process: Process | undefined;
  readonly kind: 'timer' | 'arrival';
}

/** Some hundred times of what a run takes: somebody asks again and again without time passing. */
const MOST_STEPS = 100_000;

export class Scheduler {
  #nowMs = 0;
  #order = 0;
  readonly #heap: Event[] = [];

  now(): number {
    return this.#nowMs;
  }

  /** Runs `run` at `atMs`, or now if that is over. Without a process it is the world's own. */
  at(atMs: number, run: () => void, process?: Process, kind: Event['kind'] = 'arrival'): Cancel {
    const event: Event = { atMs: Math.max(atMs, this.#nowMs), order: this.#order, run, process, kind };
    this.#order += 1;
    this.#push(event);
    return () => (event.run = undefined);
  }

  /** Runs events until `over()`; `entered` is called before each. Several runs may be under way in one thread. */
  async run(over: () => boolean, limitMs: number, entered: () => void): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let steps = 0;
    const step = (): void => {
      try {
        entered();
        steps += 1;
        if (steps > MOST_STEPS) throw new Error(`at ${this.#nowMs} ms there is no end of it`);
        for (;;) {
          if (over()) return resolve();
          const event = this.#next();
          if (event === undefined || event.atMs > limitMs) return resolve();
          event.run!();
          // What belongs to no process wakes no promise: it needs no turn of its own.
          if (event.process !== undefined) break;
        }
        setImmediate(step);
      } catch (error) {
        reject(error);
      }
    };
    step();
    await promise;
  }

  #next(): Event | undefined {
    for (;;) {
      const event = this.#pop();
      if (event === undefined) return undefined;
      const { process } = event;
      if (event.run === undefined || process?.dead === true) continue;
      if (process !== undefined && process.lapsedUntilMs > event.atMs) {
        const late = (event.kind === 'timer') === process.timersFirst ? 0 : 1e-6;
        event.atMs = process.lapsedUntilMs + late;
        this.#push(event);
        continue;
      }
      this.#nowMs = event.atMs;
      return event;
    }
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(event, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1;
      if (!before(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function before(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
