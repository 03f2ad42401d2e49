import type { Clock } from '../core/ports.ts';

/**
 * Resolves with the first value that is not undefined, asking again every 20 ms.
 * Rejects after `withinMs` with `what` was waited for and the last error of `look`.
 */
export async function until<T>(
  clock: Clock,
  what: string,
  look: () => Promise<T | undefined> | T | undefined,
  withinMs = 20_000,
): Promise<T> {
  const end = clock.now() + withinMs;
  for (;;) {
    let cause: unknown;
    try {
      const found = await look();
      if (found !== undefined) return found;
    } catch (error) {
      cause = error;
    }
    if (clock.now() > end) throw new Error(`waited ${withinMs} ms in vain for ${what}`, { cause });
    await clock.sleep(20);
  }
}
