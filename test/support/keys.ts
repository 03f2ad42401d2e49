import { Redis } from 'ioredis';
import type { RedisServer } from '../../src/demo/redis-server.ts';

/** Runs `ask` on a connection of its own to a node. */
export async function onNode<T>(node: RedisServer, ask: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(node.url);
  try {
    return await ask(redis);
  } finally {
    redis.disconnect();
  }
}

/** Keys of events (locks and records) under a prefix, sorted. The voters' own bookkeeping is left out. */
export async function eventKeys(node: RedisServer, prefix: string): Promise<string[]> {
  const keys = await onNode(node, (redis) => redis.keys(`${prefix}:*`));
  return keys.filter((key) => /:[lr]$/.test(key)).sort();
}
