/** What failed for good: kept whole, to be looked at, replayed or discarded. */
import type { AttemptRecord } from './queue.ts';
import type { QueuedDelivery } from './queued.ts';

export interface DeadLetters {
  /** Ids of all that are dead, the longest dead first. */
  ids(): Promise<readonly string[]>;
  /** Undefined: it is no dead letter, or not any more. */
  get(id: string): Promise<DeadLetter | undefined>;
  /**
   * Puts it back into the queue, with all its attempts before it. Of any number who ask at the same time one
   * is told `replayed`. `again`: see `Replay`.
   */
  replay(id: string, again: string): Promise<'replayed' | 'gone'>;
  /** Removes it for ever. */
  discard(id: string): Promise<'discarded' | 'gone'>;
}

export interface DeadLetter {
  readonly id: string;
  readonly delivery: QueuedDelivery;
  /** Oldest first; those before a replay included, as far as they are kept. */
  readonly history: readonly AttemptRecord[];
  /** Attempts since it was accepted or last replayed. */
  readonly attempts: number;
  readonly lastError: string;
  /** Epoch milliseconds. */
  readonly diedWallMs: number;
  /** How often it has been replayed. */
  readonly replays: number;
}
