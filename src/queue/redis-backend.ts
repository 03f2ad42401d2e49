/** The queue on one Redis. */
import { isIP } from 'node:net';
import { Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { UNKNOWN, type Backend, type BullQueue, type BullWorker } from './backend.ts';
import { PREFIX, type QueueOptions } from './target.ts';

/** Resolves when the server has greeted; rejects when `signal` aborts before that. */
export async function connectRedis(options: QueueOptions, signal: AbortSignal): Promise<Backend> {
  const login = loginOf(options);
  // A delivery is put in at once or not at all: nothing is kept for a server that is not there, and nothing sent twice.
  const producer = new Redis({
    ...{ ...login, enableOfflineQueue: false, autoResendUnfulfilledCommands: false, maxRetriesPerRequest: 0 },
    enableReadyCheck: false,
  });
  producer.on('error', () => undefined);
  try {
    await greeted(producer, signal);
    const info = await producer.info().catch(() => '');
    return await backendOf(options, login, producer, info);
  } catch (error) {
    producer.disconnect();
    throw error;
  }
}

/** `info`: what the server says of itself; empty where it may not be asked. */
async function backendOf(
  { service }: QueueOptions,
  login: ReturnType<typeof loginOf>,
  producer: Redis,
  info: string,
): Promise<Backend> {
  // BullMQ would fail where INFO is forbidden, and tell the console of a policy that is told in the log already.
  const skipVersionCheck = policyOf(info) !== 'noeviction';
  const queue: BullQueue = new Queue(service, { connection: producer, prefix: PREFIX, skipVersionCheck });
  queue.on('error', () => undefined);
  await queue.waitUntilReady();
  const opened: Redis[] = [];
  return {
    queue,
    worker(process, work, failed) {
      // It waits for a server that is away, and goes on where it was.
      const connection = new Redis({ ...login, maxRetriesPerRequest: null, enableReadyCheck: info !== '' });
      connection.on('error', () => undefined);
      opened.push(connection);
      const worker: BullWorker = new Worker(service, process, {
        ...work,
        connection,
        prefix: PREFIX,
        skipVersionCheck,
      });
      worker.on('error', failed);
      return worker;
    },
    ready: () => producer.status === 'ready',
    provesNothingAdded: (error) =>
      error instanceof Error && (error.name === 'ReplyError' || error.message.includes('enableOfflineQueue')),
    silent: () => producer.disconnect(true),
    doubts: async () => doubtsOf(await said(producer.info()), await said(producer.config('GET', 'append*'))),
    async close() {
      await queue.close();
      for (const redis of [producer, ...opened]) redis.disconnect();
    },
  };
}

function loginOf({ target, timeoutMs }: QueueOptions) {
  const { host, port, username, password, database, tls } = target;
  return {
    ...{ host, port, db: Number(database), connectTimeout: Math.max(1000, timeoutMs) },
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: { ...tls, ...(isIP(host) === 0 && { servername: host }) } }),
    replyMapping: 'legacy' as const,
    // A primary that was demoted keeps its connections: the next one leads to whoever is primary now.
    reconnectOnError: (error: Error) => error.message.includes('READONLY'),
    retryStrategy: (times: number) => Math.min(2000, 50 * 2 ** Math.min(times, 6)),
  };
}

async function greeted(redis: Redis, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    if (redis.status === 'ready') return resolve();
    redis.once('ready', resolve);
    signal.addEventListener('abort', () => reject(new Error('given up')), { once: true });
  });
}

/** Undefined where it may not be asked. */
async function said<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (/NOPERM|unknown command/i.test(String(error))) return undefined;
    throw error;
  }
}

function doubtsOf(info: string | undefined, config: unknown): string | undefined {
  const policy = policyOf(info ?? '');
  const settings = Array.isArray(config)
    ? (config as string[])
    : Object.entries(config ?? {})
        .flat()
        .map(String);
  const setting = (name: string): string | undefined => settings[settings.indexOf(name) + 1];
  if (policy !== undefined && policy !== 'noeviction') return `maxmemory-policy is ${policy}: it needs noeviction`;
  if (settings.length === 0) return UNKNOWN;
  if (setting('appendonly') !== 'yes') return 'appendonly is off: it needs appendonly yes and appendfsync always';
  return setting('appendfsync') === 'always'
    ? undefined
    : `appendfsync is ${setting('appendfsync')}: it needs always, or the last two seconds may be lost`;
}

const policyOf = (info: string): string | undefined => /^maxmemory_policy:(\S+)/m.exec(info)?.[1];
