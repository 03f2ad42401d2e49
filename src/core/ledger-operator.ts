/** Explain and forget, with the ledger's row beside what the voters know. */
import type { DeliveryKey } from './delivery.ts';
import type { Explanation, Forecast, Forgetting, LedgerView, Operator } from './operator.ts';
import type { Ledger, LedgerRow } from './ports.ts';

export class LedgerOperator implements Operator {
  readonly #voters: Operator;
  readonly #ledger: Ledger;

  constructor(voters: Operator, ledger: Ledger) {
    this.#voters = voters;
    this.#ledger = ledger;
  }

  async explain(key: DeliveryKey): Promise<Explanation> {
    const [explanation, row] = await Promise.all([this.#voters.explain(key), this.#ledger.look(key.id)]);
    const forecast = typeof row === 'object' ? combined(explanation.forecast, row) : explanation.forecast;
    return { ...explanation, forecast, ledger: viewOf(row) };
  }

  /**
   * The row first: the voters alone could not make the next delivery be processed. Nothing is written anywhere while
   * the ledger does not answer, or an attempt is running.
   */
  async forget(key: DeliveryKey, retentionMs: number, force: boolean): Promise<Forgetting> {
    if (!force) {
      const { voters } = await this.#voters.explain(key);
      const locks = voters.flatMap((voter) => (voter.answer !== 'none' && voter.lock ? [voter.lock.leftMs] : []));
      if (locks.length > 0) return { kind: 'in-progress', leftMs: Math.max(...locks) };
    }
    const row = await this.#ledger.forget(key.id, retentionMs, force);
    switch (row.kind) {
      case 'unavailable':
        return { kind: 'incomplete', remember: [NO_ANSWER] };
      case 'in-progress':
        return row;
      case 'unknown':
        return await this.#voters.forget(key, retentionMs, force);
      case 'forgotten': {
        const voters = await this.#voters.forget(key, retentionMs, force);
        if (voters.kind === 'unknown') return row;
        if (voters.kind !== 'forgotten') return voters;
        return {
          kind: 'forgotten',
          attempt: Math.max(row.attempt, voters.attempt),
          running: row.running || voters.running,
        };
      }
    }
  }
}

/** Where there are no voters but those in gateways' own memory: the row is all that can be asked, and it is enough. */
export class RowOperator implements Operator {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  async explain(key: DeliveryKey): Promise<Explanation> {
    const row = await this.#ledger.look(key.id);
    const unknown: Forecast =
      row === 'unavailable' ? { kind: 'unavailable', ledger: true } : { kind: 'forwarded', attempt: 1 };
    return {
      voters: [],
      forecast: typeof row === 'object' ? combined(unknown, row) : unknown,
      ledger: viewOf(row),
    };
  }

  async forget(key: DeliveryKey, retentionMs: number, force: boolean): Promise<Forgetting> {
    const row = await this.#ledger.forget(key.id, retentionMs, force);
    return row.kind === 'unavailable' ? { kind: 'incomplete', remember: [NO_ANSWER] } : row;
  }
}

const NO_ANSWER = { node: 'ledger', why: 'no answer' };

/** What a claim makes of both: done wins, then whoever is at work, then the larger attempt. */
function combined(forecast: Forecast, { attempt, done, lease }: LedgerRow): Forecast {
  if (forecast.kind === 'duplicate' || forecast.kind === 'in-progress') return forecast;
  if (done) {
    const { status, wallMs, traceId } = done;
    return { kind: 'duplicate', attempt, status, wallMs, traceId };
  }
  if (lease) return { kind: 'in-progress', unknown: lease.unknown, leftMs: lease.leftMs };
  return forecast.kind === 'forwarded'
    ? { kind: 'forwarded', attempt: Math.max(forecast.attempt, attempt + 1) }
    : forecast;
}

function viewOf(row: LedgerRow | 'none' | 'unavailable'): LedgerView {
  if (typeof row !== 'object') return { answer: row === 'none' ? 'no row' : 'none' };
  const { lease, done, attempt, floor, leftMs } = row;
  const { status, wallMs, traceId } = done ?? { status: 0, wallMs: 0, traceId: '' };
  return {
    answer: done ? 'done' : lease ? 'held' : 'free',
    // The beginning of the token says who holds it, and is no token.
    lock: lease && { holder: lease.token.slice(0, 8), unknown: lease.unknown, leftMs: lease.leftMs },
    record: { attempt, floor, leftMs, done: done && { status, wallMs, traceId } },
  };
}
