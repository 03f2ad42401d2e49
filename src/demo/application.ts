/** A small application that takes webhooks and remembers everything it was sent. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { header, type RawHeaders } from '../core/delivery.ts';

/** One request as it arrived, and what became of it. */
export interface Visit {
  readonly method: string;
  /** The request target byte for byte. */
  readonly target: string;
  readonly headers: RawHeaders;
  readonly body: Buffer;
  readonly sha256: string;
  /** `Hookonce-Key` and `Hookonce-Attempt`: the event and the number of the attempt; empty and NaN without them. */
  readonly key: string;
  readonly attempt: number;
  /** How many visits of the same event were still running when this one began. */
  readonly beside: number;
  /** Status answered, once it was. */
  status?: number;
}

export interface Answer {
  readonly status: number;
  readonly headers?: RawHeaders;
  readonly body?: Buffer | string;
}

/** Does the work of a visit. Undefined: nothing is answered; the handler does with the socket what it likes. */
export type Handler = (visit: Visit, socket: Socket) => Promise<Answer | undefined> | Answer | undefined;

export interface Application extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  readonly visits: readonly Visit[];
  /** Stops listening and drops its connections: from now on they are refused. */
  down(): Promise<void>;
  /** Listens again on the same port. */
  up(): Promise<void>;
}

export interface ApplicationOptions {
  readonly port: number;
  /** Sees each request before its body is read; true: it has dealt with it, there is no visit. */
  readonly early?: (request: IncomingMessage) => boolean;
}

export async function startApplication(handler: Handler, options: ApplicationOptions): Promise<Application> {
  const visits: Visit[] = [];
  const running = new Map<string, number>();
  const count = (key: string, change: number): void => void running.set(key, (running.get(key) ?? 0) + change);

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (options.early?.(request) === true) return;
    const body = await buffer(request);
    const visit = describe(request, body, running);
    visits.push(visit);
    count(visit.key, 1);
    try {
      const answer = await handler(visit, request.socket);
      if (answer === undefined) return;
      visit.status = answer.status;
      const reply = Buffer.from(answer.body ?? '');
      const length = answer.status === 204 || answer.status === 304 ? [] : ['Content-Length', String(reply.length)];
      response.writeHead(answer.status, [...(answer.headers ?? []), ...length]).end(reply);
    } finally {
      count(visit.key, -1);
    }
  }

  const server = createServer((request, response) => {
    // A request that breaks off before its body is whole was never a visit.
    serve(request, response).catch(() => request.socket.destroy());
  });
  const up = (): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(options.port, '127.0.0.1', () => {
        server.removeListener('error', reject);
        resolve();
      });
    });
  const down = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });

  await up();
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, visits, up, down, [Symbol.asyncDispose]: down };
}

function describe(request: IncomingMessage, body: Buffer, running: ReadonlyMap<string, number>): Visit {
  const key = header(request.rawHeaders, 'hookonce-key') ?? '';
  return {
    method: request.method ?? '',
    target: request.url ?? '',
    headers: request.rawHeaders,
    body,
    sha256: createHash('sha256').update(body).digest('hex'),
    key,
    attempt: Number(header(request.rawHeaders, 'hookonce-attempt') ?? 'NaN'),
    beside: running.get(key) ?? 0,
  };
}
