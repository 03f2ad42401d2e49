/** What the gateway adds to a delivery when there is little to do. Both ways take turns, so that noise meets both. */
import { quantile } from './figures.ts';
import type { Stage } from './stage.ts';
import type { Load } from './traffic.ts';

const PER_SECOND = 100;

/** Milliseconds. */
export interface Latency {
  readonly direct: { readonly median: number; readonly p99: number };
  readonly gateway: { readonly median: number; readonly p99: number };
  readonly failed: number;
}

export async function measureLatency(stage: Stage, load: Load, ms: number): Promise<Latency> {
  const ports = [stage.applicationPort, stage.gatewayPort];
  const { latencies, failed } = await load.run({ kind: 'paced', ports, perSecond: PER_SECOND, ms, prefix: 'paced' });
  const [direct = [], gateway = []] = latencies;
  const both = (values: readonly number[]) => ({ median: quantile(values, 0.5), p99: quantile(values, 0.99) });
  return { direct: both(direct), gateway: both(gateway), failed };
}
