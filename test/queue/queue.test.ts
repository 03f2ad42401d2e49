/** One suite for the ports `Queue` and `DeadLetters`, on everything that implements them. */
import { suite } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { FakeQueue, FakeQueueStore } from '../support/fake-queue.ts';
import { startPostgres } from '../support/postgres.ts';
import { openQueue, postgresTarget, redisTarget } from '../support/queues.ts';
import { queueSuite } from './queue-suite.ts';

suite('the queue', { concurrency: true }, () => {
  queueSuite('the fake', async () => {
    const stores = new Map<string, FakeQueueStore>();
    return {
      open: async (service, concurrency) => {
        const store = stores.get(service) ?? new FakeQueueStore();
        stores.set(service, store);
        const queue = new FakeQueue(store, systemClock, concurrency);
        return { queue, deadLetters: queue, [Symbol.asyncDispose]: async () => await queue[Symbol.asyncDispose]() };
      },
      [Symbol.asyncDispose]: async () => {},
    };
  });

  queueSuite('Redis', async () => {
    const server = await startRedisServer({ appendonly: 'always' });
    return {
      open: async (service, concurrency = 16) => await openQueue(redisTarget(server.port), { service, concurrency }),
      [Symbol.asyncDispose]: async () => await server[Symbol.asyncDispose](),
    };
  });

  queueSuite('PostgreSQL', async () => {
    const server = await startPostgres();
    return {
      open: async (service, concurrency = 16) => await openQueue(postgresTarget(server.port), { service, concurrency }),
      [Symbol.asyncDispose]: async () => await server[Symbol.asyncDispose](),
    };
  });
});
