/** A way to one voter's memory. `RedisLink` leads to a server, `MemoryLink` to a map in this process. */
import { VoterModel } from './model.ts';
import type { BatchAnswer, Item } from './items.ts';

export interface Link {
  /**
   * Runs one batch on lane `tag`; batches of one lane run in the order of the calls. Rejects with `LinkError`.
   * After `'noscript'` nothing has run and `load()` mends it; any other class leaves open what has run.
   */
  run(batch: readonly Item[], tag: string): Promise<BatchAnswer>;
  load(): Promise<void>;
  /** Called with every change: whether a batch can be sent now. */
  onChange(listener: (up: boolean) => void): void;
  close(): Promise<void>;
}

/** Why a batch has no answer; the class is a metric label (closed set, see `errors.ts`). */
export class LinkError extends Error {
  readonly errorClass: string;
  constructor(errorClass: string, cause?: unknown) {
    super(`voter: ${errorClass}`, { cause });
    this.errorClass = errorClass;
  }
}

/** The embedded voter's link: answers on a later turn, like a server would. */
export class MemoryLink implements Link {
  readonly #model: VoterModel;

  constructor(now: () => number) {
    this.#model = new VoterModel({ now });
  }

  async run(batch: readonly Item[]): Promise<BatchAnswer> {
    return this.#model.run(batch);
  }

  async load(): Promise<void> {}

  onChange(listener: (up: boolean) => void): void {
    listener(true);
  }

  async close(): Promise<void> {}
}
