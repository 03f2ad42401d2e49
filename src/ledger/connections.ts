/**
 * The pool to one database. Every statement ends within its time, the wait for a connection included; one that did not
 * is given up with its connection, as nobody knows what that would still answer. Nothing that happens to a connection,
 * idle or not, ever reaches the process as an unhandled error.
 */
import { Socket } from 'node:net';
import { DatabaseError, Pool, type PoolClient, type PoolConfig } from 'pg';
import type { Clock } from '../core/ports.ts';
import { classOf, DeadlineError, isStale } from './errors.ts';

export interface Address {
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
}

const GOODBYE_MS = 500;

export type Row = Readonly<Record<string, unknown>>;
export type Ask = (text: string, values?: readonly unknown[]) => Promise<readonly Row[]>;

export class Connections implements AsyncDisposable {
  readonly #pool: Pool;
  readonly #clock: Clock;
  readonly #most: number;
  readonly #busy = new Set<PoolClient>();
  readonly #sockets = new Set<Socket>();

  constructor(address: Address, most: number, timeoutMs: number, clock: Clock) {
    const { tls, ...where } = address;
    this.#clock = clock;
    this.#most = most;
    this.#pool = new Pool({
      ...where,
      ...(tls && {
        ssl: { rejectUnauthorized: tls.verify, ca: tls.ca, cert: tls.cert, key: tls.key } as PoolConfig['ssl'] & object,
      }),
      max: most,
      connectionTimeoutMillis: Math.max(timeoutMs, 1000),
      idleTimeoutMillis: 60_000,
      keepAlive: true,
      application_name: 'hookonce',
      stream: () => this.#socket(),
    });
    this.#pool.on('error', () => undefined);
    this.#pool.on('connect', (client) => {
      // A connection that breaks while nobody asks it anything has no statement to fail.
      client.on('error', () => undefined);
      // The server gives up what the gateway has given up: a row that stays locked must not collect sessions.
      client.query(`set statement_timeout = ${Math.ceil(timeoutMs)}`).catch(() => undefined);
    });
  }

  /**
   * One statement. A connection that was cut is replaced, until there can be none left of those that were there; one to
   * a server that is read-only once. Rejects with what the server said, or `DeadlineError`.
   */
  async ask(text: string, values: readonly unknown[], timeoutMs: number): Promise<readonly Row[]> {
    const untilMs = this.#clock.now() + timeoutMs;
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.use(async (ask) => await ask(text, values), untilMs - this.#clock.now());
      } catch (error) {
        const most = { cut: this.#most + 1, readonly: 2 }[classOf(error) as string] ?? 1;
        if (tries >= most || this.#clock.now() >= untilMs) throw error;
      }
    }
  }

  /** Several statements on one connection. */
  async use<T>(work: (ask: Ask) => Promise<T>, timeoutMs: number): Promise<T> {
    const deadline = Promise.withResolvers<never>();
    const cancel = this.#clock.timer(timeoutMs, () => deadline.reject(new DeadlineError('no answer in time')));
    const connecting = this.#pool.connect();
    let client: PoolClient;
    try {
      client = await Promise.race([connecting, deadline.promise]);
    } catch (error) {
      cancel();
      // One that comes too late goes back to the pool.
      connecting.then(
        (late) => late.release(),
        () => undefined,
      );
      throw error;
    }
    this.#busy.add(client);
    const ask: Ask = async (text, values = []) => (await client.query<Row>(text, [...values])).rows;
    const working = work(ask);
    let broken = true;
    try {
      const result = await Promise.race([working, deadline.promise]);
      broken = false;
      return result;
    } catch (error) {
      // What the server refused leaves the connection as good as before, unless the server itself is not what it was.
      broken = !(error instanceof DatabaseError) || isStale(classOf(error));
      throw error;
    } finally {
      cancel();
      deadline.promise.catch(() => undefined);
      working.catch(() => undefined);
      if (this.#busy.delete(client)) client.release(broken);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#busy) client.release(true);
    this.#busy.clear();
    const ended = this.#pool.end();
    // A server that is silent does not say goodbye either.
    const patience = new AbortController();
    await Promise.race([ended, this.#clock.sleep(GOODBYE_MS, patience.signal)]);
    patience.abort();
    for (const socket of this.#sockets) socket.destroy();
    await ended;
  }

  #socket(): Socket {
    const socket = new Socket();
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    return socket;
  }
}
