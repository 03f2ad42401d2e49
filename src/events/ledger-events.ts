/** The ledger's part of the events, and the ladder from whole to nothing that voters and ledger stand on together. */
import type { Logger } from 'pino';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Events } from '../core/ports.ts';
import { SHORT } from './buckets.ts';
import { DEGRADATION, keys, LEDGER_OPERATIONS, LEDGER_VERDICTS } from './labels.ts';

export type LedgerEvents = Pick<Events, Extract<keyof Events, `ledger${string}`>> & {
  /** How many voters count, and how many there are. */
  voters(up: number, all: number): void;
};

/** `configured`: without a ledger there is the ladder alone. `fallback`: whether any route lets the ledger decide alone. */
export function ledgerEvents(
  registry: Registry,
  log: Logger,
  configured: boolean,
  fallback: () => boolean,
): LedgerEvents {
  const registers = [registry];
  const ladder = new Gauge({
    name: 'hookonce_degradation',
    help: 'What claims stand on: 1 for the current step, from none (all voters) to no_quorum (nothing decides).',
    labelNames: ['state'],
    registers,
  });
  let [up, all, ledgerUp] = [0, 1, false];
  const show = (): void => {
    const quorum = up > all / 2;
    const below = ledgerUp && fallback() ? 'ledger_only' : 'no_quorum';
    const state = up === all ? 'none' : quorum ? 'voters_missing' : below;
    for (const each of keys(DEGRADATION)) ladder.set({ state: each }, each === state ? 1 : 0);
  };
  const voters = (countedNow: number, total: number): void => {
    [up, all] = [countedNow, total];
    show();
  };
  if (!configured) return { ...silent, voters };

  const metrics = createMetrics(registers);
  let known: string | undefined;
  return {
    voters,
    ledgerState(isUp, why) {
      ledgerUp = isUp;
      metrics.up.set(isUp ? 1 : 0);
      show();
      const now = isUp ? 'up' : `down: ${why}`;
      if (now === known) return;
      known = now;
      if (isUp) log.info('the ledger answers');
      else log.warn({ why }, 'the ledger does not answer');
    },
    ledgerCommand: (operation, ms) => metrics.command.observe({ operation }, ms / 1000),
    ledgerError(operation, errorClass) {
      metrics.errors.inc({ class: errorClass });
      log.debug({ operation, class: errorClass }, 'ledger error');
    },
    ledgerVerdict: (verdict) => metrics.verdicts.inc({ verdict }),
    ledgerWriteFailed: (operation) => metrics.failed.inc({ operation }),
    ledgerBehind: (rows) => metrics.behind.set(rows),
    ledgerDropped(rows) {
      metrics.dropped.inc(rows);
      log.error(
        { rows },
        'rows were not written to the ledger, and will not be: these events are known to the voters alone',
      );
    },
  };
}

function createMetrics(registers: Registry[]) {
  const metrics = {
    up: new Gauge({ name: 'hookonce_ledger_up', help: '1 while the ledger answers.', registers }),
    command: new Histogram({
      ...{ name: 'hookonce_ledger_command_seconds', help: 'One statement on the ledger.', registers },
      ...{ labelNames: ['operation'], buckets: SHORT },
    }),
    errors: new Counter({
      ...{ name: 'hookonce_ledger_errors_total', help: 'Statements without a usable answer, by class.', registers },
      labelNames: ['class'],
    }),
    verdicts: new Counter({
      ...{ name: 'hookonce_ledger_verdicts_total', help: 'What the ledger had to say about claims.', registers },
      labelNames: ['verdict'],
    }),
    failed: new Counter({
      ...{
        name: 'hookonce_ledger_write_failures_total',
        help: 'Writes that were due and could not be made.',
        registers,
      },
      labelNames: ['operation'],
    }),
    behind: new Gauge({ name: 'hookonce_ledger_behind', help: 'Rows that wait to be written.', registers }),
    dropped: new Counter({
      ...{ name: 'hookonce_ledger_dropped_total', help: 'Rows that will not be written any more.', registers },
    }),
  };
  metrics.up.set(0);
  metrics.behind.set(0);
  for (const operation of keys(LEDGER_OPERATIONS)) metrics.command.zero({ operation });
  for (const operation of keys(LEDGER_OPERATIONS)) metrics.failed.inc({ operation }, 0);
  for (const verdict of keys(LEDGER_VERDICTS)) metrics.verdicts.inc({ verdict }, 0);
  return metrics;
}

const silent: Omit<LedgerEvents, 'voters'> = {
  ledgerState: () => undefined,
  ledgerCommand: () => undefined,
  ledgerError: () => undefined,
  ledgerVerdict: () => undefined,
  ledgerWriteFailed: () => undefined,
  ledgerBehind: () => undefined,
  ledgerDropped: () => undefined,
};
