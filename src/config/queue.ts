/** The queue: where it is, how to log in, and how failures are dealt with. */
import { describe, type Findings, type Path } from './complaints.ts';
import type { QueueSettings } from './schema-queue.ts';
import { nameOf, readPem, readSecret, type Source } from './secrets.ts';

/** Durations in milliseconds. */
export interface QueueConfig {
  readonly target: QueueTarget;
  readonly timeoutMs: number;
  readonly concurrency: number;
  readonly attempts: number;
  readonly backoff: { readonly firstMs: number; readonly maxMs: number };
  readonly nonRetryable: readonly number[];
  readonly deadRetentionMs: number;
  readonly page: boolean;
}

export interface QueueTarget {
  readonly kind: 'redis' | 'postgres';
  /** `host:port`, for the log. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Number of the Redis database, or name of the PostgreSQL one. */
  readonly database: string;
  /** PEM bytes; undefined: no TLS. */
  readonly tls:
    | { readonly ca: Buffer | undefined; readonly cert: Buffer | undefined; readonly key: Buffer | undefined }
    | undefined;
}

const AT: Path = ['queue'];
const FORM = 'a URL such as redis://host:port, rediss://host:port or postgres://host:port/database';

/** Undefined after a complaint without which nothing more can be said. */
export function compileQueue(settings: QueueSettings, source: Source, findings: Findings): QueueConfig | undefined {
  const target = targetOf(settings, source, findings);
  if (settings.backoff.first > settings.backoff.max)
    findings.complain([...AT, 'backoff', 'max'], 'found less than queue.backoff.first; needs at least as much');
  if (target === undefined) return undefined;
  const { attempts, concurrency, nonRetryable, page } = settings;
  return {
    ...{ target, attempts, concurrency, nonRetryable, page },
    timeoutMs: settings.timeout,
    backoff: { firstMs: settings.backoff.first, maxMs: settings.backoff.max },
    deadRetentionMs: settings.deadRetention,
  };
}

function targetOf(settings: QueueSettings, source: Source, findings: Findings): QueueTarget | undefined {
  const at: Path = [...AT, 'url'];
  const { url: written } = settings;
  const text = typeof written === 'string' ? written : readSecret(written, source, at, findings);
  if (text === undefined) return undefined;
  // What comes by reference is a secret: not even a part of it is shown.
  const found =
    typeof written === 'string' ? `found ${describe(written, at)}` : `the URL in ${nameOf(written)} is not fit`;
  const complain = (needs: string): undefined => {
    findings.complain(at, `${found}; needs ${needs}`);
  };

  const url = URL.parse(text);
  const kind = url && KINDS[url.protocol];
  if (!kind || url.hostname === '' || url.hash !== '') return complain(FORM);
  if (typeof written === 'string' && (url.username !== '' || url.password !== ''))
    return complain(
      'a URL without user and password: use username and password: {file: …}, or a reference to the whole URL',
    );
  const database = decodeURIComponent(url.pathname.slice(1));
  if (kind === 'redis' && !/^\d{0,4}$/.test(database))
    return complain('the number of a Redis database after the port, or nothing');
  if (kind === 'postgres' && !/^[^/]{1,63}$/.test(database)) return complain('the name of a database after the port');
  const mode = kind === 'postgres' ? sslMode(url) : '';
  if (mode === undefined || (kind === 'redis' && url.search !== ''))
    return complain(
      `${FORM}, without query${kind === 'postgres' ? ' but sslmode (disable, require, verify-ca or verify-full)' : ''}`,
    );

  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const port = Number(url.port || DEFAULT_PORTS[kind]);
  const secure = url.protocol === 'rediss:' || !['', 'disable'].includes(mode);
  return {
    ...{ kind, host, port, database },
    name: `${url.hostname}:${port}`,
    username: settings.username ?? (decodeURIComponent(url.username) || undefined),
    password: settings.password
      ? readSecret(settings.password, source, [...AT, 'password'], findings)
      : decodeURIComponent(url.password) || undefined,
    tls: tlsOf(settings, kind, secure, source, findings),
  };
}

const KINDS: Readonly<Record<string, QueueTarget['kind']>> = {
  'redis:': 'redis',
  'rediss:': 'redis',
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
};
const DEFAULT_PORTS = { redis: '6379', postgres: '5432' };

/** Empty without one; undefined for anything else in the query. */
function sslMode({ searchParams }: URL): string | undefined {
  const { sslmode = '', ...others } = Object.fromEntries(searchParams);
  return Object.keys(others).length > 0 || !['', 'disable', 'require', 'verify-ca', 'verify-full'].includes(sslmode)
    ? undefined
    : sslmode;
}

function tlsOf(
  { tls }: QueueSettings,
  kind: QueueTarget['kind'],
  secure: boolean,
  source: Source,
  findings: Findings,
): QueueTarget['tls'] {
  if (tls === undefined) return secure ? { ca: undefined, cert: undefined, key: undefined } : undefined;
  const at: Path = [...AT, 'tls'];
  if (kind === 'redis' && !secure)
    findings.complain(at, 'found beside a redis:// url; needs url: rediss://…, or no tls');
  const { ca, cert, key } = tls;
  if ((cert === undefined) !== (key === undefined))
    findings.complain(
      at,
      `found ${cert === undefined ? 'key without cert' : 'cert without key'}; needs both or neither`,
    );
  const read = (path: string | undefined, name: string): Buffer | undefined =>
    path === undefined ? undefined : readPem(path, source, [...at, name], findings);
  return { ca: read(ca, 'ca'), cert: read(cert, 'cert'), key: read(key, 'key') };
}
