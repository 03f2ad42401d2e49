/** The public port in front of a real application: what is on no route goes through to it. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import type { ServerOptions } from '../../src/http/server.ts';
import { startEdge, type Edge } from './edge.ts';

export interface Proxied extends AsyncDisposable {
  readonly edge: Edge;
  readonly port: number;
  /** Where the application listens. */
  readonly url: string;
  readonly application: Server;
}

export type Serve = (req: IncomingMessage, res: ServerResponse) => void;

export interface ProxiedOptions {
  readonly edge?: Partial<Omit<ServerOptions, 'application'>>;
  readonly application?: Partial<ServerOptions['application']>;
  readonly listen?: ListenOptions;
}

export async function startProxied(serve: Serve, options: ProxiedOptions = {}): Promise<Proxied> {
  const application = createServer(serve);
  application.listen(options.listen ?? { port: 0, host: '127.0.0.1' });
  await once(application, 'listening');
  const { port } = application.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const edge = await proxyingEdge({ url, ...options.application }, options.edge);
  return {
    edge,
    port: edge.port,
    url,
    application,
    async [Symbol.asyncDispose]() {
      application.closeAllConnections();
      application.close();
      await edge.server.close();
    },
  };
}

export async function proxyingEdge(
  application: Partial<ServerOptions['application']>,
  change: Partial<Omit<ServerOptions, 'application'>> = {},
): Promise<Edge> {
  return await startEdge(undefined, {
    unmatched: 'proxy',
    application: {
      ...{ url: 'http://127.0.0.1:1', host: 'preserve', connectTimeoutMs: 5_000, keepAliveMs: 1_000, maxProxied: 50 },
      ...application,
    },
    ...change,
  });
}
