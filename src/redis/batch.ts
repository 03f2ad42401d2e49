/** Items that wait to be sent, and how they are cut into batches. */
import type { Answer, Item } from './items.ts';

/** What the server and the wire take in one go. */
const MAX_ITEMS = 200;
const MAX_BYTES = 256 * 1024;

/** An answer and the boot that gave it. */
export type Reply = Answer & { readonly boot: string };

/** An item on its way to an answer. */
export interface Pending {
  readonly item: Item;
  /** A deadline after the turn that issued it; undefined until that turn has ended. */
  dueMs: number | undefined;
  /** Already sent once and found no script. */
  reloaded: boolean;
  /** A claim whose release has been asked for since. */
  withdrawn: boolean;
  /** Gone once answered, or given up. */
  resolve: ((reply: Reply) => void) | undefined;
}

/** Cuts a queue into batches that the server and the wire can take in one go, order kept. */
export function* batches(queue: readonly Pending[]): Generator<readonly Pending[]> {
  let batch: Pending[] = [];
  let bytes = 0;
  for (const pending of queue) {
    const size = 120 + ('content' in pending.item ? pending.item.content.length : 0);
    if (batch.length > 0 && (batch.length === MAX_ITEMS || bytes + size > MAX_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(pending);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}
