/** Numbers from many measurements. */

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which the share `q` of the values lies, between two neighbours in proportion; NaN of none. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const [low, high] = [sorted[Math.floor(at)] ?? Number.NaN, sorted[Math.ceil(at)] ?? Number.NaN];
  return low + (high - low) * (at - Math.floor(at));
}

/** Of measurements that were made side by side: each with its neighbour, so that what slows the machine slows both. */
export function ratios(ours: readonly number[], theirs: readonly number[]): number[] {
  return ours.map((value, round) => value / theirs[round]!);
}
