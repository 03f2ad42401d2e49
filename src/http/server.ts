/**
 * The public port. Routing and bodies are our own (every path and content type must come through byte
 * for byte), so fastify sees each request as one for `/` and hands it over in its first hook.
 */
import { createServer as createHttpServer, STATUS_CODES, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import fastify from 'fastify';
import type { Outcome, Received, Trail } from '../core/delivery.ts';
import type { Memory } from '../core/memory.ts';
import type { Clock, Events, Tracing } from '../core/ports.ts';
import type { Route } from '../core/route.ts';
import { own } from './answer.ts';
import { trackConnections, type Connections } from './connections.ts';
import { createEntrance } from './entrance.ts';
import { createIngest } from './ingest.ts';
import { head } from './lines.ts';
import { createPassage, type PassageOptions } from './passage.ts';
import { createPassthrough } from './passthrough.ts';
import { createPeers, type Peers } from './peer.ts';
import { respond } from './respond.ts';
import { createUpgrades } from './upgrade.ts';
import { createWhere, upgradeTo } from './where.ts';

export interface ServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly routes: readonly Route[];
  /** What happens to what is on no route. */
  readonly unmatched: 'proxy' | 'reject';
  /** Where it goes then. */
  readonly application: PassageOptions;
  /** Networks whose word about others is taken. */
  readonly trustedProxies: readonly string[];
  readonly memory: Memory;
  readonly limits: {
    /** Largest body of one delivery, bytes. */
    readonly body: number;
    /** Request line and header lines of one request, bytes. */
    readonly headers: number;
    /** Deliveries that are unanswered at the same time. */
    readonly inFlight: number;
  };
  readonly receive?: Partial<Patience>;
  readonly clock: Clock;
  readonly tracing?: Tracing | undefined;
  readonly events: Pick<Events, 'deliveryStarted' | 'deliveryEnded' | 'proxyStarted' | 'proxyEnded' | 'warn'>;
  /** Handles a delivery to its end; what is learnt on the way goes into `trail`. The server answers and reports it. */
  handle(route: Route, received: Received, trail: Trail): Promise<Outcome>;
}

/** What can be changed while the port is open; deliveries that have begun end under what they began with. */
export interface EdgeSettings extends Pick<ServerOptions, 'routes' | 'unmatched' | 'trustedProxies' | 'limits'> {
  readonly maxProxied: number;
}

export interface EdgeServer extends AsyncDisposable {
  readonly port: number;
  /** For every request from now on. Throws, having changed nothing, when two routes have the same path. */
  reload(settings: EdgeSettings): void;
  /** From now on every answer closes its connection; new ones are still taken. */
  drain(): void;
  /** Takes no new connection, closes idle ones, resolves when the last request has been answered. */
  close(): Promise<void>;
}

/** How slow a client may be, milliseconds. */
export interface Patience {
  /** With its headers; then 408. */
  readonly headersMs: number;
  /** With the body of a delivery; then 408. */
  readonly bodyMs: number;
  /** Without taking anything of what the application has for it; then it is cut off. */
  readonly stalledMs: number;
}

const PATIENCE: Patience = { headersMs: 10_000, bodyMs: 30_000, stalledMs: 120_000 };
/** Longer than load balancers keep idle connections (60 s is common), so that they close first. */
const KEEP_ALIVE_MS = 75_000;
/** After this much silence the other side is asked whether it is still there: a stream may be silent, its client must not be gone. */
const PROBE_MS = 60_000;

/** Resolves once the port is open; rejects when it cannot be. */
export async function createServer(options: ServerOptions): Promise<EdgeServer> {
  const { headersMs, bodyMs, stalledMs } = { ...PATIENCE, ...options.receive };
  let draining = false;
  let { limits } = options;
  let place = createWhere(options.routes, options.unmatched);
  const where: typeof place = (req, target) => place(req, target);

  const expecting = new WeakSet<IncomingMessage>();
  const server: Server = createHttpServer({
    headersTimeout: headersMs,
    // What is passed through may take its time; the body of a delivery has a limit of its own.
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(2_000, headersMs / 2),
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Bytes that one side may be ahead of the other: little, as there may be many streams that nobody takes from.
    highWaterMark: 16 * 1024,
    keepAlive: true,
    keepAliveInitialDelay: PROBE_MS,
    maxHeaderSize: options.limits.headers,
    // Refused in `where` instead, with an answer like every other.
    requireHostHeader: false,
    shouldUpgradeCallback: (req) => upgradeTo(where(req, req.url!)) !== undefined,
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
  const connections = trackConnections(server, options.clock);
  let trusted = createPeers(options.trustedProxies);
  const peers: Peers = { of: (req) => trusted.of(req), client: (req) => trusted.client(req) };
  const closing = (): boolean => draining;
  const passage = createPassage(options.application, { ...options, peers });
  const passThrough = createPassthrough(passage, { ...options, connections, closing, discardMs: bodyMs, stalledMs });
  const upgrade = createUpgrades(passage, connections, stalledMs);
  server.on('upgrade', (req, socket, first) => {
    const wanted = upgradeTo(where(req, req.url!));
    if (wanted === undefined) refuse(socket, 501);
    else upgrade({ req, socket, first, ...wanted });
  });
  // A forward proxy is asked so, which this is not.
  server.on('connect', (_req, socket) => refuse(socket, 405));

  const entrance = createEntrance(limits.inFlight);
  const ingest = createIngest({
    ...options,
    ...{ where, passThrough, peers, entrance, closing, bodyMs },
    bodyLimit: () => limits.body,
  });
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
    // What has been connected and not been accepted yet would be reset with the port.
    await new Promise<void>((resolve) => options.clock.soon(resolve));
    await app.close();
    passage.close();
  };
  return {
    port: (server.address() as AddressInfo).port,
    reload(next) {
      [place, trusted] = [createWhere(next.routes, next.unmatched), createPeers(next.trustedProxies)];
      limits = next.limits;
      entrance.resize(limits.inFlight);
      passage.resize(next.maxProxied);
      // Read by Node whenever a connection begins; its types do not tell.
      Object.assign(server, { maxHeaderSize: limits.headers });
    },
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
  refuse(socket, BROKEN[error.code ?? ''] ?? 400);
}

/** An answer on a connection without a response, which ends with it. */
function refuse(socket: Duplex, status: number): void {
  const { headers, body } = own(status, 'rejected', STATUS_CODES[status]!.toLowerCase(), ['Connection', 'close']);
  socket.on('error', () => {});
  socket.once('finish', () => socket.destroy());
  socket.write(head(status, headers), 'latin1');
  socket.end(body);
}

const BROKEN: Record<string, number> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
};
