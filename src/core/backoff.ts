/** Delays between attempts, as an immutable value. */

export interface Backoff {
  /** Before the second attempt. */
  readonly firstMs: number;
  /** No pause is longer. */
  readonly maxMs: number;
}

/** Of each pause, to either side: jobs that failed together come again apart, and every pause still exceeds the one before. */
const JITTER = 0.2;
const FACTOR = 2;

/** The pause after attempt `attempt`, counted from 1. `random`: uniform in [0, 1). Whole milliseconds. */
export function pauseAfter(attempt: number, { firstMs, maxMs }: Backoff, random: number): number {
  const plain = Math.min(maxMs, firstMs * FACTOR ** Math.min(attempt - 1, 60));
  return Math.round(plain * (1 - JITTER + 2 * JITTER * random));
}
