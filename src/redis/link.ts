/** A way to one voter's memory. `RedisLink` leads to a server, `MemoryLink` to a map in this process. */
import { VoterModel } from './model.ts';
import type { Facts } from './facts.ts';
import type { BatchAnswer, Item } from './items.ts';

export interface Link {
  /**
   * Runs one batch on lane `tag`; batches of one lane run in the order of the calls. Rejects with `LinkError`.
   * After `'noscript'` nothing has run and `load()` mends it; any other class leaves open what has run.
   */
  run(batch: readonly Item[], tag: string): Promise<BatchAnswer>;
  load(): Promise<void>;
  /**
   * `changed` is called now and with every change: whether a batch can be sent. `failed`: with the class of
   * what broke the connection, or kept it from being made.
   */
  onChange(changed: (up: boolean) => void, failed?: (errorClass: string) => void): void;
  /** One page of the events that have a record here; begins and ends with cursor `'0'`. Rejects with `LinkError`. */
  scan(cursor: string, tag: string): Promise<Page>;
  /** What each of its servers says of itself. Rejects with `LinkError`; not there where there is no server. */
  facts?(): Promise<readonly Facts[]>;
  close(): Promise<void>;
}

export interface Page {
  readonly cursor: string;
  readonly ids: readonly string[];
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

  async scan(): Promise<Page> {
    return { cursor: '0', ids: this.#model.ids() };
  }

  onChange(listener: (up: boolean) => void): void {
    listener(true);
  }

  async close(): Promise<void> {}
}
