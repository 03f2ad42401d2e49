/** A real redis-server in a directory of its own, which can be frozen, killed and started again. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startChild, type Child } from './child.ts';
import { freePort } from './free-port.ts';

export interface RedisServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  readonly pid: number | undefined;
  /** Stops it in its tracks: connections stay open and nothing answers. */
  freeze(): void;
  thaw(): void;
  /** Ends it without a chance to write anything more. */
  kill(): Promise<void>;
  /** Starts it again on the same port, with the data that it wrote (`appendonly`). */
  start(): Promise<void>;
}

export interface RedisOptions {
  /** Keep an append-only file, synced as said. Without it a restart forgets everything. */
  readonly appendonly?: 'always' | 'everysec';
  /** More arguments, as on the command line. */
  readonly args?: readonly string[];
  /** The whole environment; without it, that of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export async function redisServerInstalled(): Promise<boolean> {
  await using child = startChild('redis-server', ['--version']);
  return (await child.exited).code === 0;
}

export async function startRedisServer(options: RedisOptions = {}): Promise<RedisServer> {
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-redis-'));
  let { child, port } = await launchOnFreePort(dir, options);

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return child.pid;
    },
    freeze: () => child.signal('SIGSTOP'),
    thaw: () => child.signal('SIGCONT'),
    kill: async () => await child[Symbol.asyncDispose](),
    async start() {
      await child[Symbol.asyncDispose]();
      child = await launch(port, dir, options);
    },
    async [Symbol.asyncDispose]() {
      await child[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

async function launchOnFreePort(dir: string, options: RedisOptions): Promise<{ child: Child; port: number }> {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    try {
      return { child: await launch(port, dir, options), port };
    } catch (error) {
      // Somebody else may take the port between the look and the bind.
      if (tries === 5) throw error;
    }
  }
}

async function launch(port: number, dir: string, { appendonly, args = [], env }: RedisOptions): Promise<Child> {
  const append =
    appendonly === undefined ? ['--appendonly', 'no'] : ['--appendonly', 'yes', '--appendfsync', appendonly];
  const given = [
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', ...append],
    ...['--maxmemory-policy', 'noeviction', ...args],
  ];
  const child = startChild('redis-server', given, env ? { env } : {});
  await child.line(/Ready to accept connections/);
  return child;
}
