/**
 * The watchdog: keeps a lease alive while work goes on under it (protocol section 4).
 *
 *     beating ──extend ok──▶ beating, next beat after a third of the lock's life
 *        └──extend failed──▶ again after a tenth of it, until validity has ended ──▶ lost
 *     lost: told once; the work cannot be undone, so extension goes on where it still can
 *
 * It ends by `stop()`, or by itself `maxHold` after the claim. `stop()` waits for a beat under way:
 * nothing may settle a lease while an extension of it is still in flight.
 */
import type { Cancel, Claims, Clock, Events, Lease } from './ports.ts';

export interface HoldTimes {
  readonly lockTtlMs: number;
  /** How long a lock is left behind when the application did not answer. */
  readonly unknownHoldMs: number;
  /** Longest time that one attempt may hold its event. */
  readonly maxHoldMs: number;
}

export class Watchdog {
  readonly #claims: Claims;
  readonly #lease: Lease;
  readonly #times: HoldTimes;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #untilMs: number;
  #lost = false;
  #stopped = false;
  /** Most work ends before the first beat: until then there is no more than this timer. */
  #cancel: Cancel = () => {};
  #beating: Promise<void> | undefined;

  constructor(claims: Claims, lease: Lease, times: HoldTimes, clock: Clock, events: Events) {
    this.#claims = claims;
    this.#lease = lease;
    this.#times = times;
    this.#clock = clock;
    this.#events = events;
    this.#untilMs = clock.now() + times.maxHoldMs;
    this.#beatAfter(times.lockTtlMs / 3);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#beating;
  }

  #beatAfter(ms: number): void {
    this.#cancel = this.#clock.timer(ms, () => {
      if (this.#clock.now() < this.#untilMs) this.#beating = this.#beat();
    });
  }

  async #beat(): Promise<void> {
    const { lockTtlMs } = this.#times;
    const held = await this.#claims.extend(this.#lease);
    if (held) {
      this.#events.lockExtended('ok');
    } else if (this.#lost || this.#lease.validForMs() > 0) {
      this.#events.lockExtended('failed');
    } else {
      this.#lost = true;
      this.#events.lockExtended('lost');
      this.#events.lockFailed('lost');
    }
    if (!this.#stopped) this.#beatAfter(held ? lockTtlMs / 3 : lockTtlMs / 10);
  }
}
