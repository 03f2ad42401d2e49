/**
 * The application, reached by undici. A request is sent at most once: no retry, no redirect, no decoding.
 *
 * One exchange:
 *
 *     waiting ──connection, mayStart──▶ sent ──reply complete──▶ answered
 *        │                               ├── reset, bad reply ──▶ unknown/reset
 *        │                               └── timeouts ──────────▶ unknown/timeout, goes on as *late*
 *        └── no connection, expired ──▶ never-sent
 *
 * undici calls `onRequestStart` when it has a connection, in the same turn and right before it writes
 * the head (`writeH1`). An error thrown there takes the request out of the queue without a byte written
 * and leaves the connection open; that is where `mayStart` is asked.
 *
 * Only the pool is loaded: all of undici, with fetch, caches and WebSockets, is 12 MB more of resident memory.
 *
 * A late exchange keeps its slot and its memory until it ends: the application is still at work on it.
 */
import { STATUS_CODES } from 'node:http';
import type { Dispatcher } from 'undici';
import Pool from 'undici/lib/dispatcher/pool.js';
import { appAddress } from './core/app-address.ts';
import { createCollector, type Collector } from './core/collect.ts';
import type { AppReply, RawHeaders } from './core/delivery.ts';
import { withHost } from './core/forwarded.ts';
import { withoutHopByHop } from './core/hop-by-hop.ts';
import type { AppRequest, AppResult, Cancel, Clock, NeverSent, Upstream } from './core/ports.ts';
import { createSlots, type SlotLimits } from './core/slots.ts';

/** Slots: the requests at the application at the same time, late ones included. */
export interface UpstreamOptions extends SlotLimits {
  /** Where the application listens: `http://host:port`, `https://host:port` or `unix:/path`. */
  readonly url: string;
  /** Whose name it is called by: the one that the sender used, or its own. */
  readonly host: 'preserve' | 'upstream';
  /** From the free slot to the last byte of the reply, milliseconds; connecting counts in it. */
  readonly timeoutMs: number;
  readonly connectTimeoutMs: number;
  /** From the connection to the head of the reply; undefined: as long as the whole. */
  readonly headersTimeoutMs?: number | undefined;
  /** How long an idle connection is kept, unless the application names a time of its own. */
  readonly keepAliveMs: number;
  /** Reply bodies up to this many bytes are kept; of larger ones only status and headers. */
  readonly maxReply: number;
}

/** What can be changed while requests are under way; they end under what they began with. */
export type UpstreamLimits = SlotLimits & Pick<UpstreamOptions, 'maxReply'>;

export interface ResizableUpstream extends Upstream, AsyncDisposable {
  resize(limits: UpstreamLimits): void;
}

/** `onWaiting` hears how many requests wait for a slot. */
export function createUpstream(
  options: UpstreamOptions,
  clock: Clock,
  onWaiting?: (count: number) => void,
): ResizableUpstream {
  const { tls, authority, servername, socketPath } = appAddress(options.url);
  const slots = createSlots(options, clock, onWaiting);
  /** As many connections as slots: a request rather waits for one that is about to be free than opens another. */
  const open = (connections: number): Pool =>
    new Pool(`${tls ? 'https' : 'http'}://${authority}`, {
      connections,
      pipelining: 1,
      allowH2: false,
      connectTimeout: options.connectTimeoutMs,
      // Time is kept here: undici's own timeouts would cut the exchange.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: options.keepAliveMs,
      ...(socketPath !== undefined && { socketPath }),
    });
  let current = options;
  let pool = open(options.maxInFlight);
  const pools = new Set([pool]);
  const named = options.host === 'upstream' ? (lines: RawHeaders) => withHost(lines, authority) : undefined;

  return {
    async send(request: AppRequest, mayStart: () => boolean): Promise<AppResult> {
      const slot = await slots.take();
      if (slot !== 'taken') return neverSent(slot, 'no free slot');
      return await new Promise((resolve) => {
        const exchange = new Exchange(request, current, clock, mayStart, resolve, () => slots.give());
        pool.dispatch(
          {
            path: request.target,
            method: request.method,
            headers: requestHeaders(named?.(request.headers) ?? request.headers),
            body: request.body,
            idempotent: false,
            // The certificate is the application's own, whatever Host the sender wrote.
            ...(servername !== undefined && { servername }),
          },
          exchange,
        );
      });
    },
    resize(limits) {
      if (limits.maxInFlight !== current.maxInFlight) {
        const before = pool;
        pool = open(limits.maxInFlight);
        pools.add(pool);
        void before.close().then(() => pools.delete(before));
      }
      current = { ...current, ...limits };
      slots.resize(limits);
    },
    async [Symbol.asyncDispose]() {
      slots.close();
      await Promise.all([...pools].map(async (each) => await each.destroy()));
    },
  };
}

class Exchange implements Dispatcher.DispatchHandler {
  #state: 'waiting' | 'sent' | 'late' | 'over' = 'waiting';
  readonly #options: UpstreamOptions;
  readonly #share: AppRequest['share'];
  readonly #clock: Clock;
  readonly #mayStart: () => boolean;
  readonly #resolve: (result: AppResult) => void;
  readonly #onOver: () => void;
  readonly #begun: number;
  #late: PromiseWithResolvers<AppReply | undefined> | undefined;
  readonly #cancelConnect: Cancel;
  readonly #cancelTotal: Cancel;
  #cancelHeaders: Cancel = () => {};
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #reason: Pick<AppReply, 'reason'> = {};
  #headers: RawHeaders = [];
  /** undefined: the body is larger than what is kept, or than the memory that there is. */
  #body: Collector | undefined;

  constructor(
    request: AppRequest,
    options: UpstreamOptions,
    clock: Clock,
    mayStart: () => boolean,
    resolve: (result: AppResult) => void,
    onOver: () => void,
  ) {
    this.#options = options;
    this.#share = request.share;
    this.#share?.hold();
    this.#clock = clock;
    this.#mayStart = mayStart;
    this.#resolve = resolve;
    this.#onOver = onOver;
    this.#begun = clock.now();
    this.#cancelConnect = clock.timer(options.connectTimeoutMs, () =>
      this.#noConnection('connect_timeout', 'connect timeout'),
    );
    this.#cancelTotal = clock.timer(options.timeoutMs, () => this.#timeout('timeout'));
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
    const { headersTimeoutMs } = this.#options;
    if (headersTimeoutMs !== undefined)
      this.#cancelHeaders = this.#clock.timer(headersTimeoutMs, () => this.#timeout('headers_timeout'));
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, _headers: unknown, phrase = ''): void {
    if (status < 200) return;
    this.#cancelHeaders();
    this.#status = status;
    // undici has read it as UTF-8, which it need not be.
    if (phrase !== STATUS_CODES[status] && /^[\t\x20-\x7e]+$/.test(phrase)) this.#reason = { reason: phrase };
    this.#headers = withoutHopByHop(latin1(controller.rawHeaders));
    this.#body = createCollector(this.#options.maxReply, this.#share);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#body?.add(chunk) !== 'ok') this.#body = undefined;
  }

  onResponseEnd(): void {
    const body = this.#body?.whole();
    const reply: AppReply = { status: this.#status, ...this.#reason, headers: this.#headers, body };
    this.#end({ kind: 'answered', reply, upstreamMs: this.#clock.now() - this.#begun }, reply);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#state === 'waiting') this.#noConnection('unreachable', error.message);
    else this.#end(this.#unknown('reset'));
  }

  #noConnection(why: 'unreachable' | 'connect_timeout', message: string): void {
    if (this.#state === 'waiting') this.#end(neverSent(why, message));
  }

  #timeout(how: 'timeout' | 'headers_timeout'): void {
    if (this.#state === 'waiting') return this.#noConnection('connect_timeout', 'timeout');
    if (this.#state !== 'sent') return;
    this.#state = 'late';
    this.#resolve(this.#unknown(how));
  }

  #unknown(how: 'timeout' | 'headers_timeout' | 'reset'): AppResult {
    this.#late ??= Promise.withResolvers();
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
    this.#cancelHeaders();
    this.#resolve(result);
    this.#late?.resolve(reply);
    this.#share?.release();
    this.#onOver();
  }
}

function neverSent(why: NeverSent, message: string): AppResult {
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
