/** The clock of one gateway process in virtual time. */
import type { Cancel, Clock } from '../../src/core/ports.ts';
import type { Random } from './random.ts';
import type { Process, Scheduler } from './scheduler.ts';

export class ProcessClock implements Clock {
  readonly #scheduler: Scheduler;
  readonly #process: Process;
  readonly #random: Random;

  constructor(scheduler: Scheduler, process: Process, random: Random) {
    this.#scheduler = scheduler;
    this.#process = process;
    this.#random = random;
  }

  now(): number {
    return this.#scheduler.now();
  }

  wall(): number {
    return 1_790_000_000_000 + Math.floor(this.#scheduler.now());
  }

  random(): number {
    return this.#random.next();
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
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
    return this.#scheduler.at(this.#scheduler.now() + ms, fn, this.#process, 'timer');
  }

  soon(fn: () => void): void {
    this.#scheduler.at(this.#scheduler.now(), fn, this.#process);
  }
}
