/** A link that a test can hold up, listen to and break, batch by batch; order is kept both ways, as on one connection. */
import type { BatchAnswer, Item } from '../../src/redis/items.ts';
import { LinkError, type Link, type Page } from '../../src/redis/link.ts';

export class InterceptedLink implements Link {
  /** Awaited before a batch goes out; throwing breaks the link for it, and nothing runs. */
  before: (batch: readonly Item[]) => void | Promise<void> = () => {};
  /** Awaited before its answer comes back; throwing loses the answer, after everything ran. */
  after: (batch: readonly Item[]) => void | Promise<void> = () => {};
  readonly #inner: Link;
  #out: Promise<unknown> = Promise.resolve();
  #back: Promise<unknown> = Promise.resolve();

  constructor(inner: Link) {
    this.#inner = inner;
  }

  async run(batch: readonly Item[], tag: string): Promise<BatchAnswer> {
    const sent = this.#out.then(async () => await this.before(batch));
    this.#out = sent.catch(() => {});
    const ran = sent.then(async () => await this.#inner.run(batch, tag));
    const behind = this.#back;
    const back = ran.then(async (answer) => {
      await behind;
      await this.after(batch);
      return answer;
    });
    this.#back = back.catch(() => {});
    return await back;
  }

  async load(): Promise<void> {
    await this.#inner.load();
  }

  async scan(cursor: string, tag: string): Promise<Page> {
    return await this.#inner.scan(cursor, tag);
  }

  onChange(changed: (up: boolean) => void, failed?: (errorClass: string) => void): void {
    this.#inner.onChange(changed, failed);
  }

  async close(): Promise<void> {
    await this.#inner.close();
  }
}

/** For `before` and `after`: fails batches that hold one of these operations. */
export function failing(...ops: readonly Item['op'][]): (batch: readonly Item[]) => void {
  return (batch) => {
    if (batch.some((item) => ops.includes(item.op))) throw new LinkError('disconnected');
  };
}

/** For `before` and `after`: keeps batches that hold one of these operations until it is opened. */
export function gate(...ops: readonly Item['op'][]): {
  hook(batch: readonly Item[]): Promise<void>;
  reached: Promise<void>;
  open(): void;
} {
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  return {
    hook: async (batch) => {
      if (!batch.some((item) => ops.includes(item.op))) return;
      reached.resolve();
      await opened.promise;
    },
    reached: reached.promise,
    open: () => opened.resolve(),
  };
}
