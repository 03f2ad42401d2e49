/** Gateways that share Redis nodes and a real PostgreSQL. */
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts';
import { systemClock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import { startCluster, type Cluster, type ClusterOptions } from './cluster.ts';
import { shortLock } from './config.ts';
import { sum } from './metrics.ts';
import { startPostgres, type Postgres, type PostgresOptions } from './postgres.ts';

export interface LedgerCluster extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly postgres: Postgres;
  /** Between the gateways and PostgreSQL. */
  readonly proxy: TcpProxy;
  /** Resolves when every gateway takes the ledger for up, or down. */
  ledgers(up: boolean): Promise<void>;
  /** Resolves when no row waits to be written any more. */
  caughtUp(): Promise<void>;
}

export interface LedgerClusterOptions extends ClusterOptions {
  readonly ledger?: Readonly<Record<string, unknown>>;
  readonly postgres?: PostgresOptions;
}

/** A time limit that a busy machine keeps; deliveries wait for a silent ledger as long, until it is skipped. */
const patient = { timeout: '1s' };
const claims = { ...shortLock, lockTtl: '4s', budget: '1300ms', recoverAfter: '1s' };

export async function startLedgerCluster(options: LedgerClusterOptions = {}): Promise<LedgerCluster> {
  await using starting = new AsyncDisposableStack();
  const postgres = starting.use(await startPostgres(options.postgres));
  const proxy = starting.use(await startTcpProxy(systemClock, postgres.port));
  const { settings = {} } = options;
  const url = new URL(postgres.url);
  url.port = String(proxy.port);
  const cluster = starting.use(
    await startCluster({
      ...options,
      files: { 'ledger.secret': `${url.href}\n`, ...options.files },
      settings: {
        ...settings,
        claims: { ...claims, ...settings.claims },
        top: { ledger: { url: { file: './ledger.secret' }, ...patient, ...options.ledger }, ...settings.top },
      },
    }),
  );
  const stack = starting.move();
  const all = async (name: string, value: number): Promise<void> => {
    for (const gateway of cluster.gateways)
      await until(systemClock, `${name} ${value}`, async () =>
        sum([await gateway.metrics()], name) === value ? true : undefined,
      );
  };
  return {
    ...{ cluster, postgres, proxy },
    ledgers: async (up) => await all('hookonce_ledger_up', up ? 1 : 0),
    caughtUp: async () => await all('hookonce_ledger_behind', 0),
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  };
}
