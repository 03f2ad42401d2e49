import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.ts';
import type { RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';

/** Runs `ask` on a connection of its own to a node. */
export async function onNode<T>(node: RedisServer, ask: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(node.url);
  try {
    return await ask(redis);
  } finally {
    redis.disconnect();
  }
}

/**
 * Resolves when everything that was acknowledged is in the append-only file. With `everysec` Redis holds a write
 * back for up to two seconds while the file is being synced, and a process that is killed then loses it.
 */
export async function writtenToFile(node: RedisServer): Promise<void> {
  await onNode(node, async (redis) => {
    await until(systemClock, 'the append-only file to be written', async () =>
      (await redis.info('persistence')).includes('aof_buffer_length:0\r') ? true : undefined,
    );
  });
}

/** Keys of events (locks and records) under a prefix, sorted. The voters' own bookkeeping is left out. */
export async function eventKeys(node: RedisServer, prefix: string): Promise<string[]> {
  const keys = await onNode(node, (redis) => redis.keys(`${prefix}:*`));
  return keys.filter((key) => /:[lr]$/.test(key)).sort();
}
