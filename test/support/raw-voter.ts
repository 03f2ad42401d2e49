/** One real redis-server with nothing but the script between it and the test. */
import { Redis } from 'ioredis';
import { systemClock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import { startRedisServer, type RedisOptions, type RedisServer } from '../../src/demo/redis-server.ts';
import type { Answer, BatchAnswer, Item } from '../../src/redis/items.ts';
import { RedisLink } from '../../src/redis/redis-link.ts';
import { keys } from '../../src/redis/codec.ts';

export interface RawVoter extends AsyncDisposable {
  readonly server: RedisServer;
  readonly link: RedisLink;
  /** A connection beside the link, for what the script does not do. */
  readonly redis: Redis;
  run(...items: readonly Item[]): Promise<BatchAnswer>;
  /** The one answer to one item. */
  ask(item: Item): Promise<Answer>;
  /** Empties the server, and makes it count. */
  fresh(): Promise<void>;
}

export const prefix = 'ho';
export const marker = keys.marker(prefix, '0');
export const hold = keys.hold(prefix, '0');

export async function rawVoter(options: RedisOptions = {}): Promise<RawVoter> {
  await using starting = new AsyncDisposableStack();
  const server = starting.use(await startRedisServer(options));
  const link = new RedisLink({
    host: '127.0.0.1',
    port: server.port,
    username: undefined,
    password: undefined,
    tls: undefined,
    prefix,
    timeoutMs: 5_000,
  });
  starting.defer(async () => await link.close());
  const redis = new Redis(server.url);
  starting.defer(() => redis.disconnect());
  await linkUp(link);

  const run = async (...items: readonly Item[]): Promise<BatchAnswer> => await link.run(items, '0');
  const stack = starting.move();
  return {
    ...{ server, link, redis, run },
    ask: async (item) => (await run(item)).answers[0]!,
    fresh: async () => {
      await redis.flushall();
      await run({ op: 'hello', nonce: 'boot-1', lifeMs: 1000, name: 'tested' }, { op: 'trust', boot: 'boot-1' });
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Resolves when the link can be asked, and the server has read its file back. */
export async function linkUp(link: RedisLink): Promise<void> {
  await new Promise<void>((resolve) => link.onChange((up) => up && resolve()));
  await until(systemClock, 'the script to be loaded', async () => await link.load().then(() => true));
}

/** Status and fields of an answer as one line; times are left out. */
export function say(answer: Answer): string {
  switch (answer.status) {
    case 'ok':
    case 'free':
      return `${answer.status}${answer.counted ? '' : ' uncounted'} ${answer.attempt},${answer.floor}`;
    case 'done':
      return `done ${answer.attempt},${answer.floor} ${answer.content}`;
    case 'held':
      return `held ${answer.token}${answer.unknown ? ' unknown' : ''} floor ${answer.floor}`;
    case 'lost':
    case 'forgotten':
      return `${answer.status} floor ${answer.floor}`;
    case 'record':
      return `record ${answer.done ? 'done' : 'open'} ${answer.attempt},${answer.floor} ${answer.content}`.trim();
    case 'lock':
      return `lock ${answer.token}${answer.unknown ? ' unknown' : ''}`.trim();
    case 'versions':
      return `versions${answer.counted ? '' : ' uncounted'} ${answer.applied},${answer.pending}`;
    case 'no-marker':
      return answer.status;
    case 'present':
      return `present ${answer.own}`.trim();
    case 'hello':
      return `hello ${answer.hold}`.trim();
    case 'error':
      return `error ${answer.message}`;
  }
}
