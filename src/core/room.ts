/** The copies of one event that wait in this process, and what is known of the lock that they wait for. */
import type { DeliveryKey, Outcome } from './delivery.ts';
import type { Clock } from './ports.ts';

/** What a waiter is called for: to lead, or to answer. */
export type Call = { readonly kind: 'lead' } | { readonly kind: 'answer'; readonly outcome: Outcome };

type Waiter = (call: Call) => void;

/** Made by the event's first delivery, which leads; closed when nobody leads and nobody waits any more. */
export class Room {
  readonly key: DeliveryKey;
  /** Somebody leads, or has just been called to. */
  led = true;
  /** The claim is over, and the application has the event. */
  forwarding = false;
  watched = false;
  /** What is waited for, where that is not the event itself: another process holds it. */
  blockedBy: DeliveryKey | undefined;
  /** Oldest first. */
  readonly #waiters: Waiter[] = [];
  readonly #lockTtlMs: number;
  readonly #clock: Clock;
  readonly #onClosed: () => void;
  #closed = false;
  #leftMs = 0;
  #learntMs = 0;

  constructor(key: DeliveryKey, lockTtlMs: number, clock: Clock, onClosed: () => void) {
    this.key = key;
    this.#lockTtlMs = lockTtlMs;
    this.#clock = clock;
    this.#onClosed = onClosed;
  }

  get waiting(): number {
    return this.#waiters.length;
  }

  /**
   * Resolves when it is this waiter's turn, or there is an answer for it; `untilMs` at the latest. Where the
   * room is full the youngest is turned away. `first`: it comes back from leading, as the oldest of all.
   */
  async wait(place: 'first' | 'last', untilMs: number, maxWaiters: number): Promise<Call> {
    const { promise, resolve: waiter } = Promise.withResolvers<Call>();
    if (place === 'first') this.#waiters.unshift(waiter);
    else this.#waiters.push(waiter);
    if (this.#waiters.length > maxWaiters) this.#dismiss(this.#waiters.at(-1)!);
    const cancel = this.#clock.timer(Math.max(0, untilMs - this.#clock.now()), () => this.#dismiss(waiter));
    const call = await promise;
    cancel();
    return call;
  }

  /** How long the event's lock will live, as it was heard just now. */
  learn(leftMs: number): void {
    this.#leftMs = leftMs;
    this.#learntMs = this.#clock.now();
  }

  /** What a copy is told that cannot wait, or no longer. */
  comeAgain(): Extract<Outcome, { kind: 'in-progress' }> {
    const agoMs = this.#clock.now() - this.#learntMs;
    // Who leads here renews the lock every third of its life.
    const passedMs = this.led ? agoMs % (this.#lockTtlMs / 3) : agoMs;
    return { kind: 'in-progress', retryAfterMs: Math.max(0, this.#leftMs - passedMs) };
  }

  callOldest(): void {
    const oldest = this.#waiters.shift();
    this.led = oldest !== undefined;
    oldest?.({ kind: 'lead' });
    this.#closeIfEmpty();
  }

  answerAll(outcome: Outcome): void {
    for (const waiter of this.#waiters.splice(0)) waiter({ kind: 'answer', outcome });
    this.#closeIfEmpty();
  }

  /** Sends a waiter away that has not been called yet. */
  #dismiss(waiter: Waiter): void {
    const index = this.#waiters.indexOf(waiter);
    if (index < 0) return;
    this.#waiters.splice(index, 1);
    waiter({ kind: 'answer', outcome: this.comeAgain() });
    this.#closeIfEmpty();
  }

  /** Once: the event's next delivery makes a room of its own, while a watcher may still be on its way out of this one. */
  #closeIfEmpty(): void {
    if (this.#closed || this.led || this.#waiters.length > 0) return;
    this.#closed = true;
    this.#onClosed();
  }
}
