/** Dead letters are kept for their time, and no longer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import type { QueueTarget } from '../../src/queue/target.ts';
import { startPostgres } from '../support/postgres.ts';
import { openQueue, postgresTarget, redisTarget } from '../support/queues.ts';
import { record, sample } from './queue-suite.ts';

async function check(target: QueueTarget): Promise<void> {
  await using end = await openQueue(target);
  end.queue.work(async ({ attempt }) => ({ kind: 'dead', attempt: record(attempt) }));
  for (const target of ['/1', '/2', '/3']) await end.queue.enqueue(sample({ target }));
  const count = async (wanted: number): Promise<void> => {
    await until(clock, `${wanted} dead letters`, async () =>
      (await end.deadLetters.ids()).length === wanted ? true : undefined,
    );
  };
  await count(3);
  {
    await using _patient = await openQueue(target, { deadRetentionMs: 600_000 });
    assert.equal((await end.deadLetters.ids()).length, 3);
  }
  await using _forgetful = await openQueue(target, { deadRetentionMs: 1 });
  await count(0);
}

test('on Redis', async () => {
  await using server = await startRedisServer({ appendonly: 'always' });
  await check(redisTarget(server.port));
});

test('on PostgreSQL', async () => {
  await using server = await startPostgres();
  await check(postgresTarget(server.port));
});
