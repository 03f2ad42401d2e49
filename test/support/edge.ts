/** The public port in front of a handler that a test writes: what it was given, and what was reported. */
import { createServer, type EdgeServer, type ServerOptions } from '../../src/http/server.ts';
import { systemClock } from '../../src/clock.ts';
import type { Outcome, Received, Trail } from '../../src/core/delivery.ts';
import { createMemory } from '../../src/core/memory.ts';
import type { DeliveryReport, ProxyReport } from '../../src/core/ports.ts';
import type { Route } from '../../src/core/route.ts';
import { reply } from './fake-upstream.ts';

export interface Edge extends AsyncDisposable {
  readonly server: EdgeServer;
  readonly port: number;
  readonly received: Received[];
  readonly routes: string[];
  readonly reports: DeliveryReport[];
  readonly proxied: ProxyReport[];
  readonly warnings: { message: string; details: Record<string, unknown> | undefined }[];
  /** Started and not ended. */
  inFlight(): number;
  /** Bytes of bodies held now. */
  buffered(): number;
  /** Resolves when the handler has been given the n-th delivery, counted from 1. */
  arrived(n: number): Promise<void>;
  /** The report of the n-th request that was passed through, counted from 1, as soon as it has ended. */
  passed(n: number): Promise<ProxyReport>;
}

type Handle = (received: Received, trail: Trail) => Promise<Outcome> | Outcome;

export async function startEdge(
  handle: Handle = () => delivered(200),
  change: Partial<ServerOptions> = {},
): Promise<Edge> {
  const received: Received[] = [];
  const routes: string[] = [];
  const reports: DeliveryReport[] = [];
  const proxied: ProxyReport[] = [];
  const warnings: Edge['warnings'] = [];
  const waiting: { n: number; resolve: () => void }[] = [];
  const passing: { n: number; resolve: () => void }[] = [];
  let inFlight = 0;
  let buffered = 0;
  const server = await createServer({
    host: '127.0.0.1',
    port: 0,
    routes: [route('hook', '/hook'), route('all', '/all/*')],
    unmatched: 'reject',
    application: {
      url: 'http://127.0.0.1:1',
      host: 'preserve',
      connectTimeoutMs: 1_000,
      keepAliveMs: 1_000,
      maxProxied: 10,
    },
    trustedProxies: [],
    memory: createMemory(2_500, (bytes) => void (buffered = bytes)),
    limits: { body: 1_000, headers: 16_384, inFlight: 100 },
    clock: systemClock,
    events: {
      deliveryStarted: () => void (inFlight += 1),
      deliveryEnded: (report) => {
        inFlight -= 1;
        reports.push(report);
      },
      proxyStarted: () => void (inFlight += 1),
      proxyEnded: (report) => {
        inFlight -= 1;
        proxied.push(report);
        for (const { n, resolve } of passing) if (n <= proxied.length) resolve();
      },
      warn: (message, details) => void warnings.push({ message, details }),
    },
    handle: async (matched, delivery, trail) => {
      received.push(delivery);
      routes.push(matched.name);
      for (const { n, resolve } of waiting) if (n <= received.length) resolve();
      return await handle(delivery, trail);
    },
    ...change,
  });
  return {
    server,
    port: server.port,
    received,
    routes,
    reports,
    proxied,
    warnings,
    inFlight: () => inFlight,
    buffered: () => buffered,
    arrived: async (n) => {
      if (received.length < n) await new Promise<void>((resolve) => waiting.push({ n, resolve }));
    },
    passed: async (n) => {
      if (proxied.length < n) await new Promise<void>((resolve) => passing.push({ n, resolve }));
      return proxied[n - 1]!;
    },
    [Symbol.asyncDispose]: async () => await server.close(),
  };
}

export function delivered(status: number, body = 'ok'): Outcome {
  return { kind: 'delivered', reply: reply(status, body), attempt: 1 };
}

/** What the edge looks at in a route; the rest is the core's. */
export function route(name: string, path: string, change: Partial<Route> = {}): Route {
  const edge = {
    name,
    path,
    inFlight: { policy: 'wait', waitMs: 0, maxWaiters: 0 },
    duplicateReply: 'empty',
    successStatus: 200,
    ...change,
  };
  return edge as Route;
}
