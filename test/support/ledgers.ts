/** The ledger on a real PostgreSQL, as gateways have it, without the gateways. */
import { systemClock } from '../../src/clock.ts';
import { Behind } from '../../src/core/ledger-behind.ts';
import { LedgerClaims, type LedgerClaimsOptions } from '../../src/core/ledger-claims.ts';
import type { Clock, Ledger } from '../../src/core/ports.ts';
import { until } from '../../src/demo/until.ts';
import { PostgresLedger, type PostgresOptions } from '../../src/ledger/postgres.ts';
import { patient, type Quorum } from './quorum.ts';
import { recordedEvents, type RecordedEvents } from './recorded-events.ts';

export interface TestLedger extends AsyncDisposable {
  readonly ledger: PostgresLedger;
  readonly events: RecordedEvents;
}

/** Does not wait until it is up. Patient enough for a busy machine. */
export function ledgerAt(url: string, more: Partial<PostgresOptions> = {}, clock: Clock = systemClock): TestLedger {
  const { hostname, port, pathname, username } = new URL(url);
  const events = recordedEvents();
  const ledger = new PostgresLedger(
    {
      ...{ host: hostname, port: Number(port), database: pathname.slice(1), user: username, password: undefined },
      ...{ tls: undefined, timeoutMs: 5_000, connections: 10, sweeps: false },
      ...more,
    },
    clock,
    events,
  );
  return { ledger, events, [Symbol.asyncDispose]: async () => await ledger[Symbol.asyncDispose]() };
}

export async function ledgerUp({ ledger }: TestLedger): Promise<void> {
  await until(systemClock, 'the ledger to be up', () => ledger.up || undefined);
}

export interface WithLedger extends AsyncDisposable {
  readonly claims: LedgerClaims;
  readonly behind: Behind;
  readonly events: RecordedEvents;
}

/** Claims on the voters of `quorum`, and on a ledger beside them. */
export function withLedger(
  quorum: Pick<Quorum, 'claims'>,
  ledger: Ledger,
  more: Partial<LedgerClaimsOptions> = {},
  clock: Clock = systemClock,
): WithLedger {
  const events = recordedEvents();
  const behind = new Behind(ledger, clock, events);
  const options: LedgerClaimsOptions = { ...patient, onDown: 'proceed', sharedVoters: true, ...more };
  const claims = new LedgerClaims({ votes: quorum.claims, ledger, behind, options, clock, events });
  return { claims, behind, events, [Symbol.asyncDispose]: async () => await behind[Symbol.asyncDispose]() };
}
