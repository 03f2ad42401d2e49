/** Many events at once, each in several copies over all gateways, from senders that retry. */
import assert from 'node:assert/strict';
import { systemClock } from '../../src/clock.ts';
import { deliverUntilDone, type Delivered } from '../../src/demo/retry.ts';
import type { Cluster } from './cluster.ts';
import { github } from './deliveries.ts';

const patience = { retryAfterScale: 0.04, maxTries: 60 };

export interface StormShape {
  /** Unique within the cluster; the events are `<name>-0`, `<name>-1`… */
  readonly name: string;
  readonly events: number;
  readonly copies: number;
  /** Events under way at the same time; 60 unless said. Senders and application share this process, which cannot keep up with more. */
  readonly atOnce?: number;
}

/** Asserts that every delivery ended 2xx, and that each event was forwarded once, as attempt 1. */
export async function stormForwardsOnce(
  cluster: Cluster,
  { name, events, copies, atOnce = 60 }: StormShape,
): Promise<void> {
  const ids = Array.from({ length: events }, (_, n) => `${name}-${n}`);
  const deliver = async (id: string, copy: number): Promise<Delivered> =>
    await deliverUntilDone(systemClock, async () => await cluster.post(copy, '/github', github(id)), patience);
  const delivered: Delivered[] = [];
  const queue = ids.values();
  const lane = async (): Promise<void> => {
    for (const id of queue) {
      delivered.push(
        ...(await Promise.all(Array.from({ length: copies }, async (_, copy) => await deliver(id, copy)))),
      );
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  assert.equal(delivered.length, events * copies);

  const failed = delivered.filter(({ ok }) => !ok).map(({ replies }) => replies.map(({ status }) => status));
  assert.deepEqual(failed, [], 'every delivery ends 2xx');
  const wrong = ids
    .map((id) => ({ id, attempts: cluster.application.of(id).map(({ attempt }) => attempt) }))
    .filter(({ attempts }) => attempts.length !== 1 || attempts[0] !== 1);
  assert.deepEqual(wrong, [], 'every event is forwarded exactly once, as attempt 1');
}
