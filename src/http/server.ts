/**
 * The public port. Routing and bodies are our own (every path and content type must come through byte
 * for byte), so fastify sees each request as one for `/` and hands it over in its first hook.
 */
import { createServer as createHttpServer, STATUS_CODES, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import fastify from 'fastify';
import type { Outcome, Received, Trail } from '../core/delivery.ts';
import type { Clock, Events } from '../core/ports.ts';
import type { Route } from '../core/route.ts';
import { own } from './answer.ts';
import { trackConnections, type Connections } from './connections.ts';
import { createIngest } from './ingest.ts';
import { createMemory } from './memory.ts';
import { respond } from './respond.ts';

export interface ServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly routes: readonly Route[];
  readonly limits: {
    /** Largest body of one delivery, bytes. */
    readonly body: number;
    /** All buffered bodies together, bytes. */
    readonly memory: number;
  };
  readonly receive?: ReceiveTimeouts;
  readonly clock: Clock;
  readonly events: Pick<Events, 'deliveryStarted' | 'deliveryEnded' | 'buffered' | 'warn'>;
  /** Handles a delivery to its end; what is learnt on the way goes into `trail`. The server answers and reports it. */
  handle(route: Route, received: Received, trail: Trail): Promise<Outcome>;
}

export interface EdgeServer extends AsyncDisposable {
  readonly port: number;
  /** From now on every answer closes its connection; new ones are still taken. */
  drain(): void;
  /** Takes no new connection, closes idle ones, resolves when the last request has been answered. */
  close(): Promise<void>;
}

/** How long a client may take for its headers, and for a whole request; then 408. Milliseconds. */
export interface ReceiveTimeouts {
  readonly headersMs: number;
  readonly requestMs: number;
}

const RECEIVE: ReceiveTimeouts = { headersMs: 10_000, requestMs: 30_000 };
/** Longer than load balancers keep idle connections (60 s is common), so that they close first. */
const KEEP_ALIVE_MS = 75_000;

/** Resolves once the port is open; rejects when it cannot be. */
export async function createServer(options: ServerOptions): Promise<EdgeServer> {
  const { headersMs, requestMs } = options.receive ?? RECEIVE;
  let draining = false;
  const ingest = createIngest({
    ...options,
    bodyLimit: options.limits.body,
    memory: createMemory(options.limits.memory, (held) => options.events.buffered(held)),
    closing: () => draining,
  });

  const expecting = new WeakSet<IncomingMessage>();
  const server: Server = createHttpServer({
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(2_000, headersMs / 2),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Refused in `ingest` instead, with an answer like every other.
    requireHostHeader: false,
  });
  // Lines past Node's limit would be dropped unseen; the limit on header bytes holds all the same.
  server.maxHeadersCount = 0;
  // Node would send `100 Continue` before any limit was looked at.
  server.on('checkContinue', (req, res) => {
    expecting.add(req);
    server.emit('request', req, res);
  });
  server.on('checkExpectation', (_req, res) =>
    respond(res, own(417, 'rejected', 'an expectation that is unknown'), true),
  );
  const connections = trackConnections(server);

  const app = fastify({
    serverFactory: (handler) => server.on('request', handler),
    rewriteUrl: () => '/',
    clientErrorHandler: (error, socket) => refuseBroken(error, socket, connections),
    return503OnClosing: false,
    exposeHeadRoutes: false,
  });
  app.addHook('onRequest', (request, reply) => {
    reply.hijack();
    const { raw: req, originalUrl: target } = request;
    void ingest({ req, res: reply.raw, target, expectsContinue: expecting.has(req) });
  });
  app.all('/', () => undefined);
  await app.listen({ host: options.host, port: options.port });

  const close = async (): Promise<void> => {
    draining = true;
    connections.closeIdle();
    const cancel = options.clock.timer(requestMs, () => connections.closeReceiving());
    await app.close();
    cancel();
  };
  return {
    port: (server.address() as AddressInfo).port,
    drain: () => void (draining = true),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/**
 * What Node's parser refuses: smuggling shapes, headers that are too large, clients that are too slow.
 * No answer while one for an earlier request on the connection is due: it would be taken for that.
 */
function refuseBroken(error: Error & { code?: string }, socket: Socket, connections: Connections): void {
  if (!socket.writable || connections.answering(socket)) return void socket.destroy();
  const status = BROKEN[error.code ?? ''] ?? 400;
  const { headers, body } = own(status, 'rejected', STATUS_CODES[status]!.toLowerCase(), ['Connection', 'close']);
  const lines = headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}\r\n`] : []));
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n`);
  socket.write(body);
  socket.destroySoon();
}

const BROKEN: Record<string, number> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};
