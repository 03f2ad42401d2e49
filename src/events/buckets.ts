/** Buckets of durations, seconds. */

export const SHORT = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const LONG = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600];

/** Buckets in seconds up to the first that leaves room above the timeout for what comes around it. */
export function bucketsPast(timeoutMs: number): number[] {
  const enough = LONG.findIndex((bound) => bound >= (1.5 * timeoutMs) / 1000);
  return enough === -1 ? LONG : LONG.slice(0, enough + 1);
}
