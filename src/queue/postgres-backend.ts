/** The queue in a PostgreSQL database, in a schema of its own that is brought up to date when it is opened. */
import { createPostgresBackend, withBackend } from 'bullmq';
import { Client } from 'pg';
import type { Backend, BullQueue, BullWorker } from './backend.ts';
import { SCHEMA, type QueueOptions } from './target.ts';

const { Queue, Worker } = withBackend(createPostgresBackend);

/** Of deliveries that are put in at the same time; more wait for one of these connections. */
const PRODUCER_CONNECTIONS = 4;
const WORKER_CONNECTIONS = 4;
/** A query without an answer for this long is given up, and its connection with it. */
const QUERY_MS = 10_000;

/** Rejects when the database cannot be reached, or is not fit. */
export async function connectPostgres(options: QueueOptions): Promise<Backend> {
  const { service } = options;
  const connection = { ...loginOf(options), max: PRODUCER_CONNECTIONS };
  const queue = new Queue(service, { connection }) as unknown as BullQueue;
  queue.on('error', () => undefined);
  try {
    await queue.waitUntilReady();
  } catch (error) {
    await queue.close().catch(() => undefined);
    throw error;
  }
  return {
    queue,
    worker(process, work, failed) {
      const own = { ...loginOf(options), max: WORKER_CONNECTIONS };
      const worker = new Worker(service, process, { ...work, connection: own });
      worker.on('error', failed);
      return worker as unknown as BullWorker;
    },
    ready: () => true,
    provesNothingAdded,
    silent: () => undefined,
    doubts: async () => await doubtsOf(options),
    close: async () => await queue.close(),
  };
}

function loginOf({ target, timeoutMs }: QueueOptions) {
  const { host, port, username, password, database, tls } = target;
  return {
    ...{ host, port, database, ssl: tls === undefined ? false : sslOf(tls) },
    ...(username !== undefined && { user: username }),
    ...(password !== undefined && { password }),
    ...{ connectionTimeoutMillis: timeoutMs, query_timeout: QUERY_MS, keepAlive: true, application_name: 'hookonce' },
    ...{ schema: SCHEMA, migrate: true },
  };
}

/** Only what there is: `undefined` would stand for an empty list of certificates. */
function sslOf(tls: NonNullable<QueueOptions['target']['tls']>): Record<string, Buffer> {
  return Object.fromEntries(Object.entries(tls).filter((entry): entry is [string, Buffer] => entry[1] !== undefined));
}

/** An error that the server itself reports took the statement back, unless the connection ended with it. */
function provesNothingAdded(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code = '' } = error as Error & { code?: string };
  if (code === 'ECONNREFUSED' || code === 'ENOTFOUND' || error.message.includes('trying to connect')) return true;
  return (
    /^[0-9A-Z]{5}$/.test(code) && !code.startsWith('08') && !code.startsWith('57P') && error.name !== 'AggregateError'
  );
}

async function doubtsOf(options: QueueOptions): Promise<string | undefined> {
  const { schema: _schema, migrate: _migrate, ...login } = loginOf(options);
  const client = new Client(login);
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<{ commit: string; fsync: string }>(
      "select current_setting('synchronous_commit') as commit, current_setting('fsync') as fsync",
    );
    const { commit, fsync } = rows[0]!;
    if (fsync === 'off') return 'fsync is off';
    return commit === 'off' ? 'synchronous_commit is off' : undefined;
  } finally {
    await client.end();
  }
}
