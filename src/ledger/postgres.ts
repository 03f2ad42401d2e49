/**
 * The ledger on PostgreSQL.
 *
 *     starting ──migrated, writable──▶ up ──3 failures in a row──▶ down ──probe: migrated, writable──▶ up
 *
 * While it is down nothing is asked but the probe, so that a database that is away costs one time limit now and then
 * and not one per delivery.
 */
import type {
  Clock,
  Events,
  Ledger,
  LedgerOperation,
  LedgerRow,
  RowLease,
  RowTaken,
  VersionChange,
  Versions,
} from '../core/ports.ts';
import { Connections, type Address, type Row } from './connections.ts';
import { decodeDone, encodeDone } from './done.ts';
import { classOf } from './errors.ts';
import { migrate } from './migrations.ts';
import { COMPLETE, FORGET, LOOK, ORDER, RELEASE, TAKE, WRITABLE } from './statements.ts';
import { sweep, SWEEP_S, sweepNowAndThen } from './sweep.ts';

export interface PostgresOptions extends Address {
  /** Of one statement, the wait for a connection included. */
  readonly timeoutMs: number;
  readonly connections: number;
  /** Whether it deletes rows that have had their time; a command line does not. */
  readonly sweeps: boolean;
}

const FAILURES = 3;
const PROBE_MS = 500;
/** A connection that was there before may lead to a server that is gone: it costs the probe no more than this. */
const PROBE_ANSWER_MS = 1000;
/** Another process may be migrating. */
const MIGRATION_MS = 35_000;

export class PostgresLedger implements Ledger, AsyncDisposable {
  readonly #connections: Connections;
  readonly #options: PostgresOptions;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;
  #up = false;
  #failures = 0;
  /** Why the last probe failed: said once. */
  #said: string | undefined;
  #wake: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(options: PostgresOptions, clock: Clock, events: Events) {
    this.#options = options;
    this.#clock = clock;
    this.#events = events;
    this.#connections = new Connections(options, options.connections, options.timeoutMs, clock);
    events.ledgerState(false, 'starting');
    this.#running = Promise.all([
      this.#probe(),
      options.sweeps ? sweepNowAndThen(async () => await this.#sweepIfUp(), clock, this.#stop.signal) : undefined,
    ]);
  }

  get up(): boolean {
    return this.#up;
  }

  async take(lease: RowLease): Promise<RowTaken> {
    return await this.#hold('take', lease, false);
  }

  async extend(lease: RowLease, unknown: boolean): Promise<RowTaken> {
    return await this.#hold('extend', lease, unknown);
  }

  async complete({ id, token, attempt, keepMs }: RowLease, done: Parameters<Ledger['complete']>[1]) {
    const rows = await this.#ask('complete', COMPLETE, [id, token, attempt, keepMs, encodeDone(done)]);
    if (typeof rows === 'string') return 'unavailable';
    return attempt > Number(rows[0]!['floor']) ? 'written' : 'forgotten';
  }

  async release({ id, token, attempt }: RowLease, takeBack: boolean): Promise<boolean> {
    return typeof (await this.#ask('release', RELEASE, [id, token, attempt, takeBack])) !== 'string';
  }

  async look(id: string): Promise<LedgerRow | 'none' | 'unavailable'> {
    const rows = await this.#ask('look', LOOK, [id]);
    if (typeof rows === 'string') return 'unavailable';
    return rows[0] ? rowOf(rows[0]) : 'none';
  }

  async forget(id: string, keepMs: number, force: boolean): ReturnType<Ledger['forget']> {
    const rows = await this.#ask('forget', FORGET, [id, keepMs, force]);
    if (typeof rows === 'string') return { kind: 'unavailable' };
    if (rows[0]) {
      const { attempt, lease } = rowOf(rows[0]);
      return { kind: 'forgotten', attempt, running: lease !== undefined };
    }
    const row = await this.look(id);
    if (row === 'unavailable') return { kind: 'unavailable' };
    if (row === 'none') return { kind: 'unknown' };
    return { kind: 'in-progress', leftMs: row.lease?.leftMs ?? 0 };
  }

  async order({ id, applied, pending, instead, keepMs }: VersionChange): Promise<Versions | 'unavailable'> {
    const rows = await this.#ask('order', ORDER, [id, applied, pending, instead, keepMs]);
    if (typeof rows === 'string') return 'unavailable';
    const [before] = rows as readonly { readonly applied: string | null; readonly pending: string | null }[];
    return { applied: before?.applied ?? '', pending: before?.pending ?? '' };
  }

  /** Deletes rows that have had their time, unless somebody did within `withinS`; resolves with how many. Rejects when it cannot. */
  async sweep(withinS: number): Promise<number> {
    const ask = async (text: string, values: readonly unknown[] = []): Promise<readonly Row[]> =>
      await this.#connections.ask(text, values, 10 * this.#options.timeoutMs);
    return await sweep(ask, withinS, this.#clock, this.#stop.signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    this.#wake.resolve();
    await this.#connections[Symbol.asyncDispose]();
    await this.#running;
  }

  async #hold(operation: 'take' | 'extend', lease: RowLease, unknown: boolean): Promise<RowTaken> {
    const { id, token, attempt, leaseMs, keepMs } = lease;
    const counts = operation === 'take' ? 1 : 0;
    const rows = await this.#ask(operation, TAKE, [id, token, attempt, leaseMs, keepMs, unknown, counts]);
    if (typeof rows === 'string') return { kind: 'unavailable', asked: rows === 'failed' };
    const row = rowOf(rows[0]!);
    if (row.done) return { kind: 'done', done: row.done, attempt: row.attempt, leftMs: row.leftMs };
    if (rows[0]!['token'] === token) return { kind: 'ours', attempt: row.attempt };
    return { kind: 'held', leftMs: row.lease?.leftMs ?? 0, unknown: row.lease?.unknown ?? false };
  }

  /** `skipped`: nothing was sent. */
  async #ask(
    operation: LedgerOperation,
    text: string,
    values: readonly unknown[],
  ): Promise<readonly Row[] | 'failed' | 'skipped'> {
    if (!this.#up) return 'skipped';
    const sentMs = this.#clock.now();
    try {
      const rows = await this.#connections.ask(text, values, this.#options.timeoutMs);
      this.#failures = 0;
      this.#events.ledgerCommand(operation, this.#clock.now() - sentMs);
      return rows;
    } catch (error) {
      const why = classOf(error);
      this.#events.ledgerError(operation, why);
      if (why === 'other') this.#events.warn('the ledger refused a statement', { error });
      this.#failures += 1;
      if (this.#failures >= FAILURES && this.#up) this.#down(why);
      return 'failed';
    }
  }

  async #sweepIfUp(): Promise<void> {
    if (this.#up) await this.sweep(SWEEP_S).catch(() => undefined);
  }

  #down(why: string): void {
    this.#up = false;
    this.#events.ledgerState(false, why);
    this.#wake.resolve();
  }

  async #probe(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const why = await this.#fit();
      if (signal.aborted) return;
      if (why === undefined) {
        [this.#up, this.#failures] = [true, 0];
        this.#wake = Promise.withResolvers();
        this.#events.ledgerState(true);
        await this.#wake.promise;
      } else {
        this.#events.ledgerState(false, why);
      }
      await this.#clock.sleep(PROBE_MS, signal);
    }
  }

  /** Undefined when it can be written to, and all tables are there. */
  async #fit(): Promise<string | undefined> {
    try {
      const [row] = await this.#connections.ask(WRITABLE, [], PROBE_ANSWER_MS);
      if (row?.['writable'] !== true) return 'readonly';
      await this.#connections.use(migrate, MIGRATION_MS);
      return undefined;
    } catch (error) {
      const why = classOf(error);
      const isNews = !this.#stop.signal.aborted && why !== this.#said;
      if (isNews && (why === 'other' || why === 'schema')) this.#events.warn('the ledger cannot be used', { error });
      this.#said = why;
      return why;
    }
  }
}

function rowOf(row: Row): LedgerRow {
  const leaseMs = Number(row['lease_ms']);
  const done = row['done'] === null ? undefined : decodeDone(row['done']);
  return {
    attempt: Number(row['attempt']),
    floor: Number(row['floor']),
    lease:
      done === undefined && leaseMs > 0 && row['token'] !== ''
        ? { token: String(row['token']), unknown: row['unknown'] === true, leftMs: Math.ceil(leaseMs) }
        : undefined,
    done,
    leftMs: Math.ceil(Number(row['left_ms'])),
  };
}
