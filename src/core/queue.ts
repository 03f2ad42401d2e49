/**
 * Async mode: what the core needs of the queue. Each interface has two implementations that pass one contract
 * suite (`test/queue`). Delivery from the queue is at least once; that the application sees an event once is
 * the work of the claim on its other half (`work.ts`).
 */
import type { OutcomeKind } from './delivery.ts';
import type { QueuedDelivery } from './queued.ts';

/** `failed`: it is not in the queue. `unknown`: it may be. */
export type Enqueued = 'queued' | 'failed' | 'unknown';

export interface Queue {
  /** Resolves once the queue has acknowledged it, or in bounded time; never rejects. */
  enqueue(delivery: QueuedDelivery): Promise<Enqueued>;
  /** Begins to take jobs, as many at a time as is configured; once. `handle` must not reject. */
  work(handle: (job: Job) => Promise<Fate>): void;
  /** Takes no more jobs; resolves when those under way have ended. */
  stop(): Promise<void>;
}

/** One try at a delivery of the queue. */
export interface Job {
  readonly id: string;
  readonly delivery: QueuedDelivery;
  /** How often it was tried, this time included: tries that used no attempt do not count. */
  readonly attempt: number;
  /** An operator has asked for it again. */
  readonly replay: Replay | undefined;
}

export interface Replay {
  /** When it was asked for, epoch milliseconds. */
  readonly wallMs: number;
  /** Not empty: whatever has become of the event meanwhile, it is done once more under this name. */
  readonly again: string;
}

/** What becomes of a job. */
export type Fate =
  | { readonly kind: 'done' }
  /** It was not its turn: it comes again after `ms`, and no attempt is used. */
  | { readonly kind: 'wait'; readonly ms: number }
  /** It failed, and comes again after `ms`. */
  | { readonly kind: 'retry'; readonly ms: number; readonly attempt: AttemptRecord }
  /** It failed for good, and is kept for an operator. */
  | { readonly kind: 'dead'; readonly attempt: AttemptRecord };

/** One line of a job's history. */
export interface AttemptRecord {
  readonly wallMs: number;
  /** Of the queue, from 1. */
  readonly attempt: number;
  readonly outcome: OutcomeKind | 'error';
  /** What the application answered. */
  readonly status?: number | undefined;
  readonly message: string;
  readonly tookMs: number;
}

/** How the queue stands. */
export interface QueueDepth {
  readonly waiting: number;
  readonly delayed: number;
  readonly active: number;
  readonly dead: number;
  /** Of those that are not dead, since it was accepted; 0 without any. */
  readonly oldestMs: number;
}
