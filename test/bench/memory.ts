/** Memory of a fresh gateway, idle and after many first deliveries, and what a done event costs a voter. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import { sum } from '../support/metrics.ts';
import type { Stage } from './stage.ts';
import type { Load } from './traffic.ts';
import { residentMB } from './usage.ts';

export interface MemoryOptions {
  readonly idleMs: number;
  readonly deliveries: number;
  readonly connections: number;
}

export interface MemoryUse {
  /** MB (10⁶ bytes). */
  readonly idleMB: number;
  readonly loadedMB: number;
  readonly bytesPerEvent: readonly number[];
  readonly deliveries: number;
  readonly failed: number;
}

export async function measureMemory(stage: Stage, load: Load, options: MemoryOptions): Promise<MemoryUse> {
  const { idleMs, deliveries, connections } = options;
  await sleep(idleMs);
  const idleMB = residentMB(stage.gatewayPid);
  const before = await usedMemory(stage);
  const port = stage.gatewayPort;
  const { delivered, failed } = await load.run({ kind: 'busy', port, connections, deliveries, prefix: 'memory' });
  const loadedMB = residentMB(stage.gatewayPid);
  await until(systemClock, 'the last completion', async () =>
    sum([await stage.gateway.metrics()], 'hookonce_completions_pending') === 0 ? true : undefined,
  );
  const after = await usedMemory(stage);
  const bytesPerEvent = after.map((bytes, node) => (bytes - before[node]!) / delivered);
  return { idleMB, loadedMB, bytesPerEvent, deliveries: delivered, failed };
}

/** Bytes that each node has allocated. */
async function usedMemory({ nodes }: Stage): Promise<number[]> {
  return await Promise.all(
    nodes.map(async ({ url }) => {
      const redis = new Redis(url);
      const info = await redis.info('memory');
      redis.disconnect();
      return Number(/used_memory:(\d+)/.exec(info)![1]);
    }),
  );
}
