/** A real PostgreSQL in a directory of its own, which can be killed, stopped and started again. */
import { rmSync } from 'node:fs';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, type QueryResultRow } from 'pg';
import { startChild, type Child } from '../../src/demo/child.ts';
import { freePort } from '../../src/demo/free-port.ts';
import type { Certificate } from './certificate.ts';
import { postgresDirectory } from '../setup/postgres-directory.ts';

export interface Postgres extends AsyncDisposable {
  readonly port: number;
  /** Its first database. */
  readonly url: string;
  readonly pid: number | undefined;
  /** A database that nobody else uses; its URL. */
  database(): Promise<string>;
  /** One statement on a connection of its own, in the database at `url` (the first one unless said). */
  query<Row extends QueryResultRow>(text: string, url?: string): Promise<Row[]>;
  /** Ends every other session, as an operator or a managed service does. */
  terminateBackends(): Promise<void>;
  /** Ends it at once, as a crash does: nothing more is written, the log is read back at the next start. */
  kill(): Promise<void>;
  /** Ends it in order; sessions are cut. */
  stop(): Promise<void>;
  /** Starts it again, on the same port and with the same data. */
  start(): Promise<void>;
  /** A hot standby that follows it, on a port of its own: read-only until it is promoted. */
  standby(): Promise<Standby>;
}

export interface Standby extends AsyncDisposable {
  readonly port: number;
  promote(): Promise<void>;
}

export interface PostgresOptions {
  /** Whether an acknowledged commit survives a power cut. Off unless asked for: a kill of the process loses nothing either way. */
  readonly fsync?: boolean;
  /** Offers TLS, and takes nothing else. */
  readonly tls?: Certificate;
  /** More settings, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>;
}

const USER = 'hookonce';
/** PostgreSQL refuses to run as root: as root it is given to `nobody`. */
const asRoot = process.getuid?.() === 0;
const NOBODY = 65_534;
const demote = asRoot ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', '--'] : [];
// Changing the user clears the wish to die with the parent: it is said once more after it.
const guarded = asRoot ? [...demote, 'setpriv', '--pdeathsig', 'KILL', '--'] : [];

export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const bin = postgresDirectory();
  if (bin === undefined) throw new Error('PostgreSQL is not installed');
  await using starting = new AsyncDisposableStack();
  const dir = await ownDirectory();
  starting.defer(async () => await rm(dir, { recursive: true, force: true }));
  const data = join(dir, 'data');
  empty ??= emptyCluster(bin);
  await run('cp', ['-a', await empty, data], dir);
  if (options.tls) await offerTls(data, options.tls);

  let { child, port } = await launchOnFreePort(bin, data, options);
  starting.defer(async () => await end('SIGQUIT'));
  const end = async (signal: 'SIGINT' | 'SIGQUIT'): Promise<void> => {
    child.signal(signal);
    await child.exited;
  };
  const urlOf = (database: string): string =>
    `postgres://${USER}@127.0.0.1:${port}/${database}${options.tls ? '?sslmode=no-verify' : ''}`;
  const url = urlOf('postgres');
  const query: Postgres['query'] = async (text, at = url) => {
    const client = new Client({ connectionString: at });
    // The server may end the session after its last answer: that is of no interest here.
    client.on('error', () => undefined);
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  };

  let databases = 0;
  const stack = starting.move();
  return {
    port,
    url,
    get pid() {
      return child.pid;
    },
    query,
    async database() {
      databases += 1;
      await query(`create database d${databases}`);
      return urlOf(`d${databases}`);
    },
    async terminateBackends() {
      await query(
        "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()",
      );
    },
    kill: async () => await end('SIGQUIT'),
    stop: async () => await end('SIGINT'),
    async start() {
      await end('SIGQUIT');
      child = await launch(bin, data, port, options);
    },
    async standby() {
      const copy = join(dir, 'standby');
      const from = ['-h', '127.0.0.1', '-p', String(port), '-U', USER, '-D', copy, '-R', '-X', 'stream', '-c', 'fast'];
      await run(join(bin, 'pg_basebackup'), from, dir);
      const second = await launchOnFreePort(bin, copy, options);
      return {
        port: second.port,
        promote: async () => await run(join(bin, 'pg_ctl'), ['promote', '-w', '-D', copy], dir),
        async [Symbol.asyncDispose]() {
          second.child.signal('SIGQUIT');
          await second.child.exited;
        },
      };
    },
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  };
}

/** Made once for each process and copied from then on: making it takes a second. */
let empty: Promise<string> | undefined;

async function emptyCluster(bin: string): Promise<string> {
  const dir = await ownDirectory();
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }));
  const data = join(dir, 'data');
  await run(join(bin, 'initdb'), ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'], dir);
  return data;
}

async function ownDirectory(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-postgres-'));
  if (asRoot) await chown(dir, NOBODY, NOBODY);
  return dir;
}

async function run(program: string, args: readonly string[], cwd: string): Promise<void> {
  const [first = program, ...rest] = [...demote, program, ...args];
  await using child = startChild(first, rest, { cwd });
  const { code } = await child.exited;
  if (code !== 0) throw new Error(`${program} ended with ${code}:\n${child.lines.slice(-20).join('\n')}`);
}

async function offerTls(data: string, { key, cert }: Certificate): Promise<void> {
  for (const [name, text] of Object.entries({ 'server.key': key, 'server.crt': cert })) {
    await writeFile(join(data, name), text, { mode: 0o600 });
    if (asRoot) await chown(join(data, name), NOBODY, NOBODY);
  }
  await writeFile(join(data, 'pg_hba.conf'), 'hostssl all all all trust\n');
}

async function launchOnFreePort(
  bin: string,
  data: string,
  options: PostgresOptions,
): Promise<{ child: Child; port: number }> {
  for (let tries = 1; ; tries += 1) {
    const port = await freePort();
    try {
      return { child: await launch(bin, data, port, options), port };
    } catch (error) {
      // Somebody else may take the port between the look and the bind.
      if (tries === 5) throw error;
    }
  }
}

async function launch(
  bin: string,
  data: string,
  port: number,
  { fsync = false, tls, settings = {} }: PostgresOptions,
): Promise<Child> {
  const set = {
    ...{ listen_addresses: '127.0.0.1', port: String(port), unix_socket_directories: '', shared_buffers: '16MB' },
    ...{ fsync: fsync ? 'on' : 'off', full_page_writes: fsync ? 'on' : 'off', ssl: tls ? 'on' : 'off' },
    ...settings,
  };
  const args = Object.entries(set).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const [first = '', ...rest] = [...guarded, join(bin, 'postgres'), '-D', data, ...args];
  const child = startChild(first, rest, { cwd: data });
  await child.line(/database system is ready to accept (read-only )?connections/);
  return child;
}
