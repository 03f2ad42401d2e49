/**
 * What this gateway wrote in the last ten seconds. A voter that comes back from its append-only file may
 * have lost the last second or two in a power cut: it is told these records again (protocol section 6).
 */
import type { Clock } from '../core/ports.ts';
import type { Item } from './items.ts';

const KEPT_MS = 10_000;
/** Dropped as a whole: a Map that is emptied one by one from its front walks over what has gone, at every look. */
const PART_MS = 1_000;

export type Learn = Extract<Item, { op: 'learn' | 'order' }>;

interface Part {
  readonly sinceMs: number;
  /** The last of each event in this time. */
  readonly written: Map<string, Learn>;
}

export class Recent {
  readonly #clock: Clock;
  /** Oldest first. */
  readonly #parts: Part[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wrote(item: Learn): void {
    const nowMs = this.#clock.now();
    while (this.#parts.length > 0 && nowMs - this.#parts[0]!.sinceMs > KEPT_MS + PART_MS) this.#parts.shift();
    let part = this.#parts.at(-1);
    if (part === undefined || nowMs - part.sinceMs >= PART_MS)
      this.#parts.push((part = { sinceMs: nowMs, written: new Map() }));
    part.written.set(item.id, item);
  }

  /** The attempt did not take place: what is left are those before it. */
  takenBack(id: string): void {
    const item = this.#parts.findLast(({ written }) => written.has(id))?.written.get(id);
    for (const { written } of this.#parts) written.delete(id);
    if (item?.op === 'learn' && item.attempt > 1) this.wrote({ ...item, attempt: item.attempt - 1 });
  }

  /** The last of each event, and at most a second's worth that is older than ten. */
  all(): Learn[] {
    const sinceMs = this.#clock.now() - KEPT_MS - PART_MS;
    const last = new Map<string, Learn>();
    for (const part of this.#parts)
      if (part.sinceMs >= sinceMs) for (const [id, item] of part.written) last.set(id, item);
    return [...last.values()];
  }
}
