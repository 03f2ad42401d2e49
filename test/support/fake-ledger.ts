/** The ledger's rows in this process's memory, as plainly as the port allows. */
import type { Done } from '../../src/core/delivery.ts';
import type { Clock, Ledger, LedgerRow, RowLease, RowTaken, VersionChange, Versions } from '../../src/core/ports.ts';
import { FakeVersions } from './fake-versions.ts';

interface Row {
  token: string;
  attempt: number;
  floor: number;
  unknown: boolean;
  leaseUntilMs: number;
  done: Done | undefined;
  untilMs: number;
}

export class FakeLedger implements Ledger {
  /** False: nothing is answered. */
  up = true;
  /** False: what is asked is written, but the answer never comes. */
  answers = true;
  /** What was asked, in order. */
  readonly calls: string[] = [];
  readonly #rows = new Map<string, Row>();
  readonly #versions: FakeVersions;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#versions = new FakeVersions(clock);
  }

  async take(lease: RowLease): Promise<RowTaken> {
    this.calls.push('take');
    return this.#hold(lease, false, 1);
  }

  async extend(lease: RowLease, unknown: boolean): Promise<RowTaken> {
    this.calls.push(unknown ? 'extend unknown' : 'extend');
    return this.#hold(lease, unknown, 0);
  }

  async complete(
    { id, token, attempt, keepMs }: RowLease,
    done: Done,
  ): Promise<'written' | 'forgotten' | 'unavailable'> {
    this.calls.push(`complete ${done.status}`);
    if (!this.up) return 'unavailable';
    const now = this.#clock.now();
    const row = this.#row(id) ?? fresh();
    if (row.token === token) row.leaseUntilMs = now;
    const isRefused = attempt <= row.floor;
    row.attempt = Math.max(row.attempt, attempt);
    if (!row.done && !isRefused) {
      row.done = done;
      row.untilMs = now + keepMs;
    }
    this.#rows.set(id, row);
    if (!this.answers) return 'unavailable';
    return isRefused ? 'forgotten' : 'written';
  }

  async release({ id, token, attempt }: RowLease, takeBack: boolean): Promise<boolean> {
    this.calls.push(takeBack ? 'release unsent' : 'release sent');
    if (!this.up) return false;
    const row = this.#row(id);
    if (row && row.token === token && !row.done) {
      row.token = '';
      row.leaseUntilMs = this.#clock.now();
      if (takeBack && row.attempt === attempt) row.attempt -= 1;
      if (row.attempt === 0 && row.floor === 0) this.#rows.delete(id);
    }
    return this.answers;
  }

  async look(id: string): Promise<LedgerRow | 'none' | 'unavailable'> {
    this.calls.push('look');
    if (!this.up || !this.answers) return 'unavailable';
    const row = this.#row(id);
    return row ? this.#shown(row) : 'none';
  }

  async forget(id: string, keepMs: number, force: boolean): ReturnType<Ledger['forget']> {
    this.calls.push('forget');
    if (!this.up || !this.answers) return { kind: 'unavailable' };
    const row = this.#row(id);
    if (!row) return { kind: 'unknown' };
    const { lease } = this.#shown(row);
    if (lease && !force) return { kind: 'in-progress', leftMs: lease.leftMs };
    [row.floor, row.done] = [row.attempt, undefined];
    row.untilMs = Math.max(row.untilMs, this.#clock.now() + keepMs);
    return { kind: 'forgotten', attempt: row.attempt, running: lease !== undefined };
  }

  async order(change: VersionChange): Promise<Versions | 'unavailable'> {
    this.calls.push('order');
    if (!this.up || !this.answers) return 'unavailable';
    return await this.#versions.order(change);
  }

  #hold({ id, token, attempt, leaseMs, keepMs }: RowLease, unknown: boolean, counts: number): RowTaken {
    if (!this.up) return { kind: 'unavailable', asked: false };
    const now = this.#clock.now();
    const row = this.#row(id) ?? fresh();
    const isMine = row.token === token;
    if (!row.done && (isMine || row.leaseUntilMs <= now)) {
      row.attempt = Math.max(row.attempt + (isMine ? 0 : counts), attempt);
      Object.assign(row, { token, unknown, leaseUntilMs: now + leaseMs, untilMs: now + keepMs });
      this.#rows.set(id, row);
    }
    if (!this.answers) return { kind: 'unavailable', asked: true };
    const { done, lease, leftMs } = this.#shown(row);
    if (done) return { kind: 'done', done, attempt: row.attempt, leftMs };
    if (row.token === token) return { kind: 'ours', attempt: row.attempt };
    return { kind: 'held', leftMs: lease?.leftMs ?? 0, unknown: row.unknown };
  }

  #row(id: string): Row | undefined {
    const row = this.#rows.get(id);
    return row && row.untilMs > this.#clock.now() ? row : undefined;
  }

  #shown({ token, attempt, floor, unknown, leaseUntilMs, done, untilMs }: Row): LedgerRow {
    const leftMs = leaseUntilMs - this.#clock.now();
    const lease = !done && token !== '' && leftMs > 0 ? { token, unknown, leftMs: Math.ceil(leftMs) } : undefined;
    return { attempt, floor, lease, done, leftMs: Math.ceil(untilMs - this.#clock.now()) };
  }
}

const fresh = (): Row => ({
  ...{ token: '', attempt: 0, floor: 0, unknown: false },
  ...{ leaseUntilMs: -Infinity, done: undefined, untilMs: Infinity },
});
