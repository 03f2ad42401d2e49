/** What the senders and the application saw, kept apart, so that the one can be held against the other. */
import { header } from '../core/delivery.ts';
import type { Reply } from './exchange.ts';
import type { PlannedEvent } from './plan.ts';

export interface Totals {
  readonly events: number;
  readonly sent: number;
  readonly forwarded: number;
  readonly duplicates: number;
  /** Of the duplicates: sent while the event was not handled yet, answered once it was. */
  readonly waited: number;
  readonly inProgress: number;
  /** Turned away for another reason, such as no quorum in time, or answered by nobody. */
  readonly turnedAway: number;
  readonly retried: number;
  readonly lost: number;
  readonly twice: number;
}

export class Tally {
  readonly #events: readonly PlannedEvent[];
  readonly #handled = new Map<string, number>();
  readonly #visits = new Map<string, number>();
  readonly #acknowledgedEarly = new Set<string>();
  readonly #outcomes = new Map<string, number>();
  #sent = 0;
  #waited = 0;
  #deliveries = 0;

  constructor(events: readonly PlannedEvent[]) {
    this.#events = events;
  }

  /** A sender began a delivery; its tries come on top. */
  delivery(): void {
    this.#deliveries += 1;
  }

  /** Returns whether the event is handled already. */
  sent(event: PlannedEvent): boolean {
    this.#sent += 1;
    return this.#handled.has(event.id);
  }

  /**
   * A sender has read its answer; `handled`: whether the event was when it was sent. A 2xx for what the
   * application has not handled is a lost event: nobody sends it again.
   */
  answered(event: PlannedEvent, reply: Reply, handled: boolean): void {
    const outcome = header(reply.headers, 'hookonce-outcome') ?? 'relayed';
    this.#outcomes.set(outcome, (this.#outcomes.get(outcome) ?? 0) + 1);
    if (outcome === 'duplicate' && !handled) this.#waited += 1;
    if (reply.status >= 200 && reply.status < 300 && !this.#handled.has(event.id))
      this.#acknowledgedEarly.add(event.id);
  }

  /** The application was asked; returns how many times it had been before. */
  visited(id: string): number {
    const before = this.#visits.get(id) ?? 0;
    this.#visits.set(id, before + 1);
    return before;
  }

  /** The application has done the work. */
  handled(id: string): void {
    this.#handled.set(id, (this.#handled.get(id) ?? 0) + 1);
  }

  totals(): Totals {
    const lost = this.#events.filter(({ id }) => !this.#handled.has(id) || this.#acknowledgedEarly.has(id));
    const forwarded = [...this.#visits.values()].reduce((sum, n) => sum + n, 0);
    const duplicates = this.#outcomes.get('duplicate') ?? 0;
    const inProgress = this.#outcomes.get('in-progress') ?? 0;
    return {
      ...{ events: this.#events.length, sent: this.#sent, forwarded, duplicates, inProgress },
      waited: this.#waited,
      turnedAway: this.#sent - forwarded - duplicates - inProgress,
      retried: this.#sent - this.#deliveries,
      lost: lost.length,
      twice: [...this.#handled.values()].filter((n) => n > 1).length,
    };
  }
}
