/** Rows that have had their time are deleted by one process of all; until then they count for nobody. */
import type { Clock } from '../core/ports.ts';
import type { Ask } from './connections.ts';
import { ELECT, sweepOf } from './statements.ts';

/** Seconds between two sweeps, of all gateways together. */
export const SWEEP_S = 60;
const BATCH = 500;
/** Between two batches, so that deliveries go first. */
const BREATH_MS = 50;

export async function sweepNowAndThen(once: () => Promise<void>, clock: Clock, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    await clock.sleep(SWEEP_S * 1000 * (0.5 + clock.random()), stopped);
    if (!stopped.aborted) await once();
  }
}

/** Resolves with how many rows: none where somebody has swept within `withinS` seconds. */
export async function sweep(ask: Ask, withinS: number, clock: Clock, stopped: AbortSignal): Promise<number> {
  if ((await ask(ELECT, [withinS])).length === 0) return 0;
  let rows = 0;
  for (const table of ['hookonce_events', 'hookonce_versions'] as const) {
    for (let last = BATCH; last === BATCH && !stopped.aborted; rows += last) {
      last = (await ask(sweepOf(table), [BATCH])).length;
      await clock.sleep(BREATH_MS, stopped);
    }
  }
  return rows;
}
