/**
 * The application, reached by undici. A request is sent at most once: no retry, no redirect, no decoding.
 *
 * One exchange:
 *
 *     waiting ──connection, mayStart──▶ sent ──reply complete──▶ answered
 *        │                               ├── reset, bad reply ──▶ unknown/reset
 *        │                               └── timeout ───────────▶ unknown/timeout, goes on as *late*
 *        └── no connection, expired ──▶ never-sent
 *
 * undici calls `onRequestStart` when it has a connection, in the same turn and right before it writes
 * the head (`writeH1`). An error thrown there takes the request out of the queue without a byte written
 * and leaves the connection open; that is where `mayStart` is asked.
 *
 * A late exchange keeps its slot until it ends: the application is still at work on it.
 */
import { isIP } from 'node:net';
import { Pool, type Dispatcher } from 'undici';
import type { AppReply, RawHeaders } from './core/delivery.ts';
import { withoutHopByHop } from './core/hop-by-hop.ts';
import type { AppRequest, AppResult, Cancel, Clock, Upstream } from './core/ports.ts';

export interface UpstreamOptions {
  /** Where the application listens: http or https, host, port. A path is ignored. */
  readonly url: string;
  /** From the free slot to the last byte of the reply, milliseconds; connecting counts in it. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  /** Requests at the application at the same time, late ones included. */
  readonly maxInFlight: number;
  /** Requests that wait for a slot, first come, first served. */
  readonly maxWaiting: number;
  readonly maxWaitMs: number;
  /** Reply bodies up to this many bytes are kept; of larger ones only status and headers. */
  readonly maxReply: number;
}

/**
 * Idle connections are closed after this long, unless the application names a time of its own: sooner
 * than common servers close them (gunicorn 2 s, Node 5 s), so that a request does not meet a closing one.
 */
const IDLE_MS = 1_000;

export function createUpstream(options: UpstreamOptions, clock: Clock): Upstream & AsyncDisposable {
  const url = new URL(options.url);
  const slots = createSlots(options, clock);
  const pool = new Pool(url.origin, {
    connections: options.maxInFlight,
    pipelining: 1,
    allowH2: false,
    connectTimeout: options.connectTimeoutMs,
    // Time is kept here: undici's own timeouts would cut the exchange.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: IDLE_MS,
  });
  // The certificate is the application's own, whatever Host the sender wrote.
  const servername = url.protocol === 'https:' && isIP(url.hostname) === 0 ? { servername: url.hostname } : {};

  return {
    async send(request: AppRequest, mayStart: () => boolean): Promise<AppResult> {
      const slot = await slots.take();
      if (slot !== 'taken') return neverSent(slot, 'no free slot');
      return await new Promise((resolve) => {
        const exchange = new Exchange(options, clock, mayStart, resolve, () => slots.give());
        pool.dispatch(
          {
            path: request.target,
            method: request.method,
            headers: requestHeaders(request.headers),
            body: request.body,
            idempotent: false,
            ...servername,
          },
          exchange,
        );
      });
    },
    async [Symbol.asyncDispose]() {
      slots.close();
      await pool.destroy();
    },
  };
}

class Exchange implements Dispatcher.DispatchHandler {
  #state: 'waiting' | 'sent' | 'late' | 'over' = 'waiting';
  readonly #limit: number;
  readonly #clock: Clock;
  readonly #mayStart: () => boolean;
  readonly #resolve: (result: AppResult) => void;
  readonly #onOver: () => void;
  readonly #begun: number;
  readonly #late = Promise.withResolvers<AppReply | undefined>();
  readonly #cancelConnect: Cancel;
  readonly #cancelTotal: Cancel;
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: RawHeaders = [];
  /** undefined: the body is larger than what is kept. */
  #body: Buffer[] | undefined = [];
  #size = 0;

  constructor(
    options: UpstreamOptions,
    clock: Clock,
    mayStart: () => boolean,
    resolve: (result: AppResult) => void,
    onOver: () => void,
  ) {
    this.#limit = options.maxReply;
    this.#clock = clock;
    this.#mayStart = mayStart;
    this.#resolve = resolve;
    this.#onOver = onOver;
    this.#begun = clock.now();
    this.#cancelConnect = clock.timer(options.connectTimeoutMs, () => this.#noConnection('connect timeout'));
    this.#cancelTotal = clock.timer(options.timeoutMs, () => this.#timeout());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#cancelConnect();
    if (this.#state === 'over') throw new Error('given up before a connection was there');
    if (!this.#mayStart()) {
      this.#end(neverSent('expired', 'the claim ran out before the first byte'));
      throw new Error('claim expired');
    }
    this.#state = 'sent';
    this.#controller = controller;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status < 200) return;
    this.#status = status;
    this.#headers = withoutHopByHop(latin1(controller.rawHeaders));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#limit) this.#body = undefined;
    this.#body?.push(chunk);
  }

  onResponseEnd(): void {
    const body = this.#body === undefined ? undefined : Buffer.concat(this.#body);
    const reply: AppReply = { status: this.#status, headers: this.#headers, body };
    this.#end({ kind: 'answered', reply, upstreamMs: this.#clock.now() - this.#begun }, reply);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#state === 'waiting') this.#noConnection(error.message);
    else this.#end(this.#unknown('reset'));
  }

  #noConnection(message: string): void {
    if (this.#state === 'waiting') this.#end(neverSent('unreachable', message));
  }

  #timeout(): void {
    if (this.#state !== 'sent') return this.#noConnection('timeout');
    this.#state = 'late';
    this.#resolve(this.#unknown('timeout'));
  }

  #unknown(how: 'timeout' | 'reset'): AppResult {
    return { kind: 'unknown', how, late: this.#late.promise, cut: () => this.#cut() };
  }

  #cut(): void {
    if (this.#state !== 'over') this.#controller?.abort(new Error('cut'));
  }

  #end(result: AppResult, reply?: AppReply): void {
    if (this.#state === 'over') return;
    this.#state = 'over';
    this.#cancelConnect();
    this.#cancelTotal();
    this.#resolve(result);
    this.#late.resolve(reply);
    this.#onOver();
  }
}

/** Slots at the application: a fixed number of them, and a bounded queue in front. */
function createSlots(options: UpstreamOptions, clock: Clock) {
  let free = options.maxInFlight;
  const queue = new Set<(slot: 'taken' | 'in_flight') => void>();
  return {
    take(): 'taken' | 'waiting' | Promise<'taken' | 'in_flight'> {
      if (free > 0) {
        free -= 1;
        return 'taken';
      }
      if (queue.size >= options.maxWaiting) return 'waiting';
      return new Promise((resolve) => {
        const serve = (slot: 'taken' | 'in_flight'): void => {
          cancel();
          queue.delete(serve);
          resolve(slot);
        };
        const cancel = clock.timer(options.maxWaitMs, () => serve('in_flight'));
        queue.add(serve);
      });
    },
    give(): void {
      const [next] = queue;
      if (next === undefined) free += 1;
      else next('taken');
    },
    close(): void {
      for (const serve of queue) serve('in_flight');
    },
  };
}

function neverSent(why: 'unreachable' | 'expired' | 'in_flight' | 'waiting', message: string): AppResult {
  return { kind: 'never-sent', why, message };
}

/** undici refuses `Expect` (the body is here already) and writes the length of the body itself. */
function requestHeaders(headers: RawHeaders): string[] {
  const lines = withoutHopByHop(headers);
  const kept: string[] = [];
  for (let i = 0; i + 1 < lines.length; i += 2) {
    const name = lines[i]!.toLowerCase();
    if (name !== 'expect' && name !== 'content-length') kept.push(lines[i]!, lines[i + 1]!);
  }
  return kept;
}

/** Header bytes as Node's own parser gives them; undici hands out a flat list of buffers. */
function latin1(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((part) => (typeof part === 'string' ? part : part.toString('latin1')));
}
