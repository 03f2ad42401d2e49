/**
 * What this gateway wrote in the last ten seconds. A voter that comes back from its append-only file may
 * have lost the last second or two in a power cut: it is told these records again (protocol section 6).
 */
import type { Clock } from '../core/ports.ts';
import type { Item } from './items.ts';

const KEPT_MS = 10_000;

export type Learn = Extract<Item, { op: 'learn' }>;

export class Recent {
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #written = new Map<string, { atMs: number; item: Learn }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wrote(item: Learn): void {
    this.#written.delete(item.id);
    this.#written.set(item.id, { atMs: this.#clock.now(), item });
    for (const [id, { atMs }] of this.#written) {
      if (atMs >= this.#clock.now() - KEPT_MS) break;
      this.#written.delete(id);
    }
  }

  /** The attempt did not take place: what is left are those before it. */
  takenBack(id: string): void {
    const item = this.#written.get(id)?.item;
    this.#written.delete(id);
    if (item && item.attempt > 1) this.wrote({ ...item, attempt: item.attempt - 1 });
  }

  all(): Learn[] {
    return [...this.#written.values()].filter(({ atMs }) => atMs >= this.#clock.now() - KEPT_MS).map(({ item }) => item);
  }
}
