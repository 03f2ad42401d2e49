/** One HTTP exchange on a connection of its own, with the bytes and header lines exactly as given. */
import { request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { RawHeaders } from '../core/delivery.ts';

export interface Message {
  readonly method?: string;
  /** Header lines without Host, Content-Length and Connection, which are added. */
  readonly headers?: RawHeaders;
  readonly body?: Buffer;
}

export interface Reply {
  readonly status: number;
  readonly headers: RawHeaders;
  readonly body: Buffer;
}

export interface ExchangeOptions {
  /** Milliseconds of silence on the connection after which the exchange fails. */
  readonly timeoutMs?: number;
  /** Aborting it drops the connection. */
  readonly signal?: AbortSignal;
}

/** `url` is origin and request target; the target is sent byte for byte. Rejects when no whole answer comes. */
export function exchange(url: string, message: Message = {}, options: ExchangeOptions = {}): Promise<Reply> {
  const { origin, target } = split(url);
  const { hostname, port, host } = new URL(origin);
  const { method = 'GET', headers = [], body } = message;
  const length = body === undefined ? [] : ['Content-Length', String(body.length)];
  return new Promise((resolve, reject) => {
    const outgoing = request({
      ...{ hostname, port, method, path: target, agent: false },
      headers: ['Host', host, ...headers, ...length, 'Connection', 'close'],
      ...(options.signal && { signal: options.signal }),
      ...(options.timeoutMs !== undefined && { timeout: options.timeoutMs }),
    });
    outgoing.once('timeout', () => outgoing.destroy(new Error(`no answer within ${options.timeoutMs} ms`)));
    outgoing.once('error', reject);
    outgoing.once('response', (incoming) => {
      buffer(incoming).then(
        (whole) => resolve({ status: incoming.statusCode ?? 0, headers: incoming.rawHeaders, body: whole }),
        reject,
      );
    });
    outgoing.end(body);
  });
}

function split(url: string): { origin: string; target: string } {
  const slash = url.indexOf('/', url.indexOf('//') + 2);
  return slash === -1 ? { origin: url, target: '/' } : { origin: url.slice(0, slash), target: url.slice(slash) };
}
