/** Delivers one copy of the event to some gateway, again and again until it is answered with success. */
import type { Gateway } from './gateway.ts';
import type { Copy, Plan } from './plan.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

export class Sender {
  readonly #copy: Copy;
  readonly #plan: Plan;
  readonly #gateways: readonly Gateway[];
  readonly #scheduler: Scheduler;
  readonly #random: Random;

  constructor(copy: Copy, plan: Plan, gateways: readonly Gateway[], scheduler: Scheduler, random: Random) {
    this.#copy = copy;
    this.#plan = plan;
    this.#gateways = gateways;
    this.#scheduler = scheduler;
    this.#random = random;
  }

  async untilSuccess(): Promise<void> {
    let successes = this.#copy.again ? 2 : 1;
    let place = this.#copy.gateway;
    let pauses = 1;
    await this.#until(this.#copy.atMs);
    for (;;) {
      const gateway = this.#gateways[place]!;
      // A process that is gone refuses the connection.
      const outcome = gateway.dead ? undefined : await gateway.receive();
      if (outcome?.kind === 'delivered' || outcome?.kind === 'duplicate') successes -= 1;
      if (successes === 0) return;
      // Nobody can take it yet: the next try comes after twice the pause.
      pauses = outcome?.kind === 'unavailable' ? Math.min(4, 2 * pauses) : 1;
      const calm = this.#scheduler.now() >= this.#plan.calmAtMs;
      const { lockTtlMs } = this.#plan;
      const [shortest, longest] = calm ? [0.1 * lockTtlMs, 0.4 * lockTtlMs] : this.#copy.retryMs;
      await this.#until(this.#scheduler.now() + pauses * this.#random.between(shortest, longest));
      place = this.#random.integer(0, this.#gateways.length - 1);
    }
  }

  async #until(atMs: number): Promise<void> {
    await new Promise<void>((resolve) => this.#scheduler.at(atMs, resolve, this.#outside));
  }

  /** Senders are processes too, that never lapse. */
  readonly #outside = { dead: false, lapsedUntilMs: 0, timersFirst: false };
}
