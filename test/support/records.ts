/** Records written past the gateway, many at once, as if other gateways had made them over time. */
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import type { RedisServer } from '../../src/demo/redis-server.ts';
import { keys } from '../../src/redis/codec.ts';

const LIFE_MS = 3_600_000;

export const randomIds = (count: number): string[] =>
  Array.from({ length: count }, () => randomBytes(16).toString('base64url'));

/** Each of the events is done on each of the nodes. */
export async function fill(nodes: readonly RedisServer[], ids: readonly string[]): Promise<void> {
  for (const node of nodes) {
    const redis = new Redis(node.url);
    for (let at = 0; at < ids.length; at += 10_000) {
      const pipe = redis.pipeline();
      for (const id of ids.slice(at, at + 10_000)) pipe.set(keys.record('ho', id), 'd1,0,200,0,', 'PX', LIFE_MS);
      await pipe.exec();
    }
    redis.disconnect();
  }
}

/** How many of the events the node has a record of. */
export async function known(node: RedisServer, ids: readonly string[]): Promise<number> {
  const redis = new Redis(node.url);
  let count = 0;
  for (let at = 0; at < ids.length; at += 1_000)
    count += await redis.exists(...ids.slice(at, at + 1_000).map((id) => keys.record('ho', id)));
  redis.disconnect();
  return count;
}
