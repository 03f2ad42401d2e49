/** A lease on the voters and on the ledger's row, seen as one. */
import type { DeliveryKey } from './delivery.ts';
import type { Clock, Lease, RowLease, RowTaken } from './ports.ts';

/** Slack for the difference between the database's clock and ours: 1 % and 2 ms, as for the voters. */
const drift = (ms: number): number => ms * 0.01 + 2;

export class LedgerLease implements Lease {
  /** What the voters have granted; without a quorum where the row alone decides. */
  readonly votes: Lease;
  readonly alone: boolean;
  readonly row: RowLease;
  readonly retentionMs: number;
  readonly #clock: Clock;
  #rowUntilMs = -Infinity;

  constructor(votes: Lease, row: RowLease, retentionMs: number, alone: boolean, clock: Clock) {
    this.votes = votes;
    this.row = row;
    this.retentionMs = retentionMs;
    this.alone = alone;
    this.#clock = clock;
  }

  get key(): DeliveryKey {
    return this.votes.key;
  }

  get attempt(): number {
    return this.row.attempt;
  }

  get memorySinceMs(): number | undefined {
    return this.votes.memorySinceMs;
  }

  /** `sentMs`: when the row was asked for. */
  rowTold(taken: RowTaken, sentMs: number): void {
    if (taken.kind === 'ours') this.#rowUntilMs = sentMs + this.row.leaseMs - drift(this.row.leaseMs);
  }

  validForMs(): number {
    const votesMs = this.votes.validForMs();
    return this.alone ? Math.max(votesMs, this.#rowUntilMs - this.#clock.now()) : votesMs;
  }

  mayStart(): boolean {
    return this.alone ? this.validForMs() > this.row.leaseMs / 3 : this.votes.mayStart();
  }
}
