/**
 * Rows that the ledger could not be told of when they were due: told as soon as it answers again, the oldest first.
 * Bounded: beyond that the oldest are dropped, and said to be. They live in this process alone; one that is killed
 * takes them along, and then the voters alone know those events.
 */
import type { Done } from './delivery.ts';
import type { Clock, Events, Ledger, RowLease, VersionChange } from './ports.ts';

export type Due =
  | { readonly kind: 'complete'; readonly lease: RowLease; readonly done: Done }
  | { readonly kind: 'release'; readonly lease: RowLease; readonly takeBack: boolean }
  | { readonly kind: 'order'; readonly change: VersionChange };

const MOST = 5000;
/** Beyond as many, the replies that copies would be told are left out: they are what takes the room. */
const WITH_REPLIES = 500;
const AT_ONCE = 8;
const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2000;

export class Behind implements AsyncDisposable {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #stop = new AbortController();
  /** By event: a completion takes the place of a release. */
  readonly #due = new Map<string, Due>();
  #running: Promise<void> = Promise.resolve();
  #busy = false;

  constructor(ledger: Ledger, clock: Clock, events: Events) {
    this.#ledger = ledger;
    this.#clock = clock;
    this.#events = events;
  }

  add(due: Due): void {
    const { id } = due.kind === 'order' ? due.change : due.lease;
    const known = this.#due.get(id);
    if (known?.kind === 'complete' && due.kind === 'release') return;
    this.#due.delete(id);
    this.#due.set(id, this.#due.size < WITH_REPLIES ? due : withoutReply(due));
    const [oldest] = this.#due.keys();
    if (this.#due.size > MOST && oldest !== undefined) {
      this.#due.delete(oldest);
      this.#events.ledgerDropped(1);
    }
    this.#events.ledgerBehind(this.#due.size);
    if (this.#busy) return;
    this.#busy = true;
    this.#running = this.#run();
  }

  /** Resolves when nothing waits any more. */
  async idle(): Promise<void> {
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
    if (this.#due.size > 0) this.#events.ledgerDropped(this.#due.size);
  }

  async #run(): Promise<void> {
    let pauseMs = FIRST_PAUSE_MS;
    while (this.#due.size > 0 && !this.#stop.signal.aborted) {
      const some = [...this.#due].slice(0, AT_ONCE);
      const written = await Promise.all(some.map(async ([, due]) => await this.#write(due)));
      // Another write may have become due for the same event meanwhile: that one still is.
      some.forEach(([id, due], index) => written[index] === true && this.#due.get(id) === due && this.#due.delete(id));
      this.#events.ledgerBehind(this.#due.size);
      if (written.every((each) => each)) {
        pauseMs = FIRST_PAUSE_MS;
        continue;
      }
      await this.#clock.sleep(pauseMs, this.#stop.signal);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
    this.#busy = false;
  }

  async #write(due: Due): Promise<boolean> {
    if (due.kind === 'order') return (await this.#ledger.order(due.change)) !== 'unavailable';
    if (due.kind === 'release') return await this.#ledger.release(due.lease, due.takeBack);
    return (await this.#ledger.complete(due.lease, due.done)) !== 'unavailable';
  }
}

function withoutReply(due: Due): Due {
  if (due.kind !== 'complete' || typeof due.done.reply !== 'object') return due;
  return { ...due, done: { ...due.done, reply: 'omitted' } };
}
