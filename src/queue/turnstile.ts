/**
 * Bounds what is being written at the same time, in bytes: on its way into the queue a body exists several times
 * over, encoded, as a whole job, and as what is sent. Whoever comes waits in turn; alone, anything may pass.
 */
import type { Clock } from '../core/ports.ts';

interface Waiting {
  readonly bytes: number;
  enter(admitted: boolean): void;
}

export class Turnstile {
  readonly #most: number;
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  #inside = 0;

  constructor(most: number, clock: Clock) {
    this.#most = most;
    this.#clock = clock;
  }

  /** Resolves with false when it was not this one's turn within `withinMs`. Whoever is admitted must `leave`. */
  async enter(bytes: number, withinMs: number): Promise<boolean> {
    if (this.#waiting.length === 0 && this.#fits(bytes)) {
      this.#inside += bytes;
      return true;
    }
    const turn = Promise.withResolvers<boolean>();
    const waiting: Waiting = { bytes, enter: turn.resolve };
    this.#waiting.push(waiting);
    const cancel = this.#clock.timer(withinMs, () => {
      const at = this.#waiting.indexOf(waiting);
      if (at >= 0) this.#waiting.splice(at, 1);
      if (at >= 0) turn.resolve(false);
    });
    const admitted = await turn.promise;
    cancel();
    return admitted;
  }

  leave(bytes: number): void {
    this.#inside -= bytes;
    for (let next = this.#waiting[0]; next && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#inside += next.bytes;
      next.enter(true);
    }
  }

  #fits(bytes: number): boolean {
    return this.#inside === 0 || this.#inside + bytes <= this.#most;
  }
}
