/** Versions of resources in this process's memory, as plainly as the port allows. */
import type { Clock, VersionChange, Versions, VersionStore } from '../../src/core/ports.ts';

export class FakeVersions implements VersionStore {
  /** False: nothing is answered. */
  up = true;
  readonly #known = new Map<string, Versions & { readonly untilMs: number }>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async order({ id, applied, pending, instead, keepMs }: VersionChange): Promise<Versions | 'unavailable'> {
    if (!this.up) return 'unavailable';
    const now = this.#clock.now();
    const known = this.#known.get(id);
    const before = known && known.untilMs > now ? known : { applied: '', pending: '', untilMs: 0 };
    const keeps = instead === '' ? pending < before.pending : before.pending !== instead;
    if (applied !== '' || pending !== '' || instead !== '')
      this.#known.set(id, {
        applied: applied < before.applied ? before.applied : applied,
        pending: keeps ? before.pending : pending,
        untilMs: Math.max(before.untilMs, now + keepMs),
      });
    return { applied: before.applied, pending: before.pending };
  }
}
