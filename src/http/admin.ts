/** The admin port: probes, metrics and drain for everybody; explain and forget for whoever has the token (`operate.ts`). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import type { VoterStatus } from '../core/ports.ts';
import { operate, type OperateOptions } from './operate.ts';

export interface AdminOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Whether deliveries are wanted; `reason` says why not; how each voter stands. */
  ready(): { readonly ready: boolean; readonly reason?: string; readonly voters?: readonly VoterStatus[] };
  /** Starts draining; called any number of times. */
  drain(): void;
  readonly metrics: { readonly contentType: string; metrics(): Promise<string> };
  readonly operate: OperateOptions;
  /** Answers what is below `/-/queue`; undefined: nobody does. */
  readonly page?: ((request: IncomingMessage, response: ServerResponse) => void) | undefined;
}

export interface AdminServer extends AsyncDisposable {
  readonly port: number;
}

/** Resolves once the port is open; rejects when it cannot be. */
export async function createAdmin(options: AdminOptions): Promise<AdminServer> {
  const app = fastify({ forceCloseConnections: true });
  // A hook may send any body, under any type; it is not read. (fastify refuses types that it cannot parse.)
  app.addHook('onRequest', (request, reply, done) => {
    if (options.page && /^\/-\/queue([/?]|$)/.test(request.url)) {
      reply.hijack();
      return options.page(request.raw, reply.raw);
    }
    request.raw.headers['content-type'] = 'application/octet-stream';
    done();
  });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, payload, done) => {
    payload.resume();
    done(null);
  });

  app.get('/livez', async () => ({ live: true }));
  app.get('/readyz', async (_request, reply) => {
    const state = options.ready();
    return await reply.code(state.ready ? 200 : 503).send(state);
  });
  app.get(
    '/metrics',
    async (_request, reply) => await reply.type(options.metrics.contentType).send(await options.metrics.metrics()),
  );
  // A preStop hook of Kubernetes can only GET.
  app.route({
    method: ['GET', 'POST'],
    url: '/-/drain',
    handler: async () => {
      options.drain();
      return { draining: true };
    },
  });
  operate(app, options.operate);
  await app.listen({ host: options.host, port: options.port });

  return {
    port: (app.server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      await app.close();
    },
  };
}
