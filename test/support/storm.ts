/** Many events at once, each in several copies over all gateways, from senders that retry. */
import assert from 'node:assert/strict';
import { systemClock } from '../../src/clock.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import type { Cluster } from './cluster.ts';
import { github } from './deliveries.ts';

export interface StormShape {
  /** Unique within the cluster; the events are `<name>-0`, `<name>-1`… */
  readonly name: string;
  readonly events: number;
  readonly copies: number;
}

/** Asserts that every delivery ended 2xx, that each event was forwarded once, as attempt 1, and never beside itself. */
export async function stormForwardsOnce(cluster: Cluster, { name, events, copies }: StormShape): Promise<void> {
  const ids = Array.from({ length: events }, (_, n) => `${name}-${n}`);
  const patience = { retryAfterScale: 0.02, maxTries: 60 };
  const deliveries = ids.flatMap((id) =>
    Array.from({ length: copies }, (_, copy) =>
      deliverUntilDone(systemClock, () => cluster.post(copy, '/github', github(id)), patience),
    ),
  );
  const delivered = await Promise.all(deliveries);

  const failed = delivered.filter(({ ok }) => !ok).map(({ replies }) => replies.map(({ status }) => status));
  assert.deepEqual(failed, [], 'every delivery ends 2xx');
  const visits = ids.map((id) => cluster.application.of(id));
  assert.deepEqual(visits.filter((of) => of.length !== 1).length, 0, 'every event is forwarded exactly once');
  assert.deepEqual([...new Set(visits.flat().map(({ attempt }) => attempt))], [1]);
}
