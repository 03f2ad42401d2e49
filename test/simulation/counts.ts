/** Totals of runs, to be added up. */
export interface Counts {
  claims: number;
  won: number;
  held: number;
  split: number;
  duplicates: number;
  unavailable: number;
  forwards: number;
  /** Forwards after one that did not end in a definite failure, and successes after a success; all of them excused. */
  repeated: number;
  doubles: number;
  lost: number;
  expired: number;
  confirmed: number;
  /** First forwards that were not attempt 1. */
  mislabelled: number;
  /** By an operator. */
  forgotten: number;
}

export const noCounts = (): Counts => ({
  claims: 0,
  won: 0,
  held: 0,
  split: 0,
  duplicates: 0,
  unavailable: 0,
  forwards: 0,
  repeated: 0,
  doubles: 0,
  lost: 0,
  expired: 0,
  confirmed: 0,
  mislabelled: 0,
  forgotten: 0,
});

export function addCounts(total: Counts, more: Counts): void {
  for (const name of Object.keys(more) as (keyof Counts)[]) total[name] += more[name];
}
