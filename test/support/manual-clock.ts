/**
 * A clock that stands still until a test moves it. Before time moves, and after, everything that can
 * run does run: promises, `soon` callbacks, and what they start in turn; so a test never waits for real time.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Cancel, Clock } from '../../src/core/ports.ts';

interface Timer {
  readonly due: number;
  readonly fn: () => void;
}

export class ManualClock implements Clock {
  #now = 1_000;
  #random: number;
  readonly #wallOffset = 1_790_000_000_000;
  readonly #timers = new Set<Timer>();
  readonly #soon: (() => void)[] = [];

  /** `seed`: where the row of random numbers starts; the same seed gives the same row. */
  constructor(seed = 1) {
    this.#random = seed >>> 0;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#wallOffset + this.#now;
  }

  /** mulberry32: small, and good enough for jitter. */
  random(): number {
    this.#random = (this.#random + 0x6d2b79f5) >>> 0;
    let t = this.#random;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const wake = (): void => {
        cancel();
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const cancel = this.timer(ms, wake);
      signal?.addEventListener('abort', wake);
    });
  }

  timer(ms: number, fn: () => void): Cancel {
    const timer = { due: this.#now + Math.max(0, ms), fn };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  soon(fn: () => void): void {
    this.#soon.push(fn);
  }

  /** Timers that are set and have not fired: a test may assert that nothing was left behind. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Runs what can run now, without moving time. */
  async settle(): Promise<void> {
    await nextTurn();
    for (let fn = this.#soon.shift(); fn !== undefined; fn = this.#soon.shift()) {
      fn();
      await nextTurn();
    }
  }

  /** A busy turn of the event loop: time passes, and nothing runs. */
  skip(ms: number): void {
    this.#now += ms;
  }

  /** Moves time on by `ms`, stopping at every timer on the way. */
  async advance(ms: number): Promise<void> {
    const target = this.#now + ms;
    await this.settle();
    for (let next = this.#earliest(target); next !== undefined; next = this.#earliest(target)) {
      this.#now = Math.max(this.#now, next.due);
      this.#timers.delete(next);
      next.fn();
      await this.settle();
    }
    this.#now = target;
  }

  /** Of timers due at the same instant the one set first. */
  #earliest(target: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (timer.due <= target && (first === undefined || timer.due < first.due)) first = timer;
    }
    return first;
  }
}
