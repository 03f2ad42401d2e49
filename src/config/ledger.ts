/** The ledger: where it is, how to log in, and what its absence means. */
import type { Route } from '../core/route.ts';
import type { Findings, Path } from './complaints.ts';
import type { LedgerSettings } from './schema-ledger.ts';
import { nameOf, readPem, readSecret, type Source } from './secrets.ts';
import type { Standing } from './standing.ts';
import { formatDuration as d } from './units.ts';

/** Durations in milliseconds. */
export interface LedgerConfig {
  /** `host:port`, for people. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  readonly password: string | undefined;
  /** PEM bytes; `verify` false: whoever answers is believed; undefined: no TLS. */
  readonly tls:
    | {
        readonly verify: boolean;
        readonly ca: Buffer | undefined;
        readonly cert: Buffer | undefined;
        readonly key: Buffer | undefined;
      }
    | undefined;
  readonly timeoutMs: number;
  readonly onDown: 'proceed' | 'reject';
  readonly connections: number;
}

const AT: Path = ['ledger'];
const FORM =
  'a URL such as postgres://user:password@host:5432/database, with nothing in its query but sslmode (disable, require, verify-ca, verify-full or no-verify)';
const MODES = ['', 'disable', 'require', 'verify-ca', 'verify-full', 'no-verify'];

/** `shared`: whether there are Redis nodes. Undefined after a complaint without which nothing more can be said. */
export function compileLedger(
  settings: LedgerSettings,
  shared: boolean,
  source: Source,
  findings: Findings,
): LedgerConfig | undefined {
  const { timeout: timeoutMs, connections, onDown = shared ? 'proceed' : 'reject' } = settings;
  if (!shared && onDown === 'proceed')
    findings.warn(
      [...AT, 'onDown'],
      'proceed, but there are no redis.nodes: while the ledger does not answer, every gateway decides by itself',
    );
  const text = readSecret(settings.url, source, [...AT, 'url'], findings);
  const url = text === undefined ? undefined : URL.parse(text);
  const target = url && targetOf(url);
  // What comes by reference is a secret: not even a part of it is shown.
  if (text !== undefined && !target)
    findings.complain([...AT, 'url'], `the URL in ${nameOf(settings.url)} is not fit; needs ${FORM}`);
  const { mode = '', ...where } = target ?? {};
  const tls = tlsOf(settings, mode, source, findings);
  return 'host' in where ? { ...(where as Target), tls, timeoutMs, onDown, connections } : undefined;
}

type Target = Pick<LedgerConfig, 'name' | 'host' | 'port' | 'database' | 'user' | 'password'>;

function targetOf(url: URL): (Target & { readonly mode: string }) | undefined {
  const { sslmode: mode = '', ...others } = Object.fromEntries(url.searchParams);
  const database = decode(url.pathname.slice(1));
  const [user, password] = [decode(url.username), decode(url.password)];
  const isFit =
    ['postgres:', 'postgresql:'].includes(url.protocol) &&
    ![url.hostname, user, database, password].some((part) => part === undefined) &&
    ![url.hostname, user, database].includes('') &&
    !database!.includes('/') &&
    url.hash === '' &&
    Object.keys(others).length === 0 &&
    MODES.includes(mode);
  if (!isFit) return undefined;
  const port = Number(url.port || '5432');
  return {
    ...{ mode, port, name: `${url.hostname}:${port}`, host: url.hostname.replace(/^\[(.*)\]$/, '$1') },
    ...{ database: database!, user: user!, password: password === '' ? undefined : password },
  };
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

function tlsOf({ tls }: LedgerSettings, mode: string, source: Source, findings: Findings): LedgerConfig['tls'] {
  if (tls === undefined && (mode === '' || mode === 'disable')) return undefined;
  const at: Path = [...AT, 'tls'];
  if (mode === 'disable') findings.complain(at, 'found beside sslmode=disable; needs one or the other');
  const { ca, cert, key } = tls ?? {};
  if ((cert === undefined) !== (key === undefined))
    findings.complain(
      at,
      `found ${cert === undefined ? 'key without cert' : 'cert without key'}; needs both or neither`,
    );
  const read = (path: string | undefined, name: string): Buffer | undefined =>
    path === undefined ? undefined : readPem(path, source, [...at, name], findings);
  return { verify: mode !== 'no-verify', ca: read(ca, 'ca'), cert: read(cert, 'cert'), key: read(key, 'key') };
}

/** What must hold between the ledger and other settings. `given`: whether there is one, right or wrong. */
export function checkLedger(
  routes: readonly Pick<Route, 'name' | 'onUnavailable'>[],
  given: boolean,
  ledger: LedgerConfig | undefined,
  { claims, redis, ...standing }: Standing,
  findings: Findings,
): void {
  const alone = routes.filter(({ onUnavailable }) => onUnavailable === 'ledger').map(({ name }) => name);
  if (alone.length > 0 && !given)
    findings.complain(AT, `found nothing, but route ${alone[0]} has onUnavailable: ledger; needs ledger.url`);
  if (!ledger) return;
  if ('service' in standing && standing.service === undefined)
    findings.complain(
      ['service'],
      'found nothing, but ledger is set; needs the name under which gateways share events',
    );
  if (alone.length > 0 && ledger.onDown === 'proceed' && redis && redis.nodes.length > 0)
    findings.warn(
      [...AT, 'onDown'],
      `proceed, and route ${alone[0]} has onUnavailable: ledger: when one gateway reaches only PostgreSQL and another only the Redis nodes, both may forward the same event; ledger.onDown: reject rules that out`,
    );
  const votes = redis && redis.nodes.length > 0 ? 2 * redis.timeout : 0;
  const least = votes + ledger.timeoutMs + 50;
  if (claims && claims.budget <= least)
    findings.complain(
      ['claims', 'budget'],
      `found ${d(claims.budget)} with ledger.timeout ${d(ledger.timeoutMs)}${redis ? ` and redis.timeout ${d(redis.timeout)}` : ''}; needs more than 2 × redis.timeout + ledger.timeout + 50ms, which is ${d(least)}`,
    );
}
