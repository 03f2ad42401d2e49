/** What the history of a run knows of a claim that was won, and of whoever won it. */
import type { QuorumLease } from '../../src/redis/quorum-lease.ts';

/** A gateway process. */
export interface Actor {
  readonly name: string;
  /** How long it has lapsed in all. */
  readonly lapsedMs: number;
  readonly dead: boolean;
  /** When it last found a voter that cannot be asked. */
  readonly refusedMs: number;
}

export interface Attempt {
  readonly lease: QuorumLease;
  readonly by: Actor;
  readonly wonMs: number;
  forwardedMs?: number;
  /** When its gateway first sent its completion. */
  completingMs?: number;
  /** Definite failure known to the gateway, or never sent. */
  endedMs?: number;
  /** The gateway knows its completion on a quorum. */
  concludedMs?: number;
  /** By voter: when the last reply that its gateway has heard was made. Kept at the conclusion. */
  heardMs?: readonly number[];
  /** Bytes were sent, and no answer came in time. */
  unknownMs?: number;
  /** The completion was given up. */
  gaveUpMs?: number;
  /** When its gateway last sent an extension. */
  extendedMs: number;
  /** How long its gateway had lapsed when it won. */
  readonly lapsedMs: number;
}

export function describe(attempt: Attempt): string {
  return `attempt ${attempt.lease.attempt} of ${attempt.by.name}`;
}

/** Whether its gateway was up and awake ever since. */
export function isWatched({ by, lapsedMs }: Attempt): boolean {
  return !by.dead && by.lapsedMs === lapsedMs;
}
