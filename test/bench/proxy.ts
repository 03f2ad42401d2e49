/** `@fastify/http-proxy` that does nothing but proxy: what one would have in front of the application without Hookonce. */
import type { AddressInfo } from 'node:net';
import httpProxy from '@fastify/http-proxy';
import fastify, { type FastifyInstance } from 'fastify';
import { serve } from './worker.ts';

export interface ProxyTask {
  readonly upstream: string;
}

export interface ProxyAnswer {
  readonly port: number;
}

let app: FastifyInstance | undefined;

serve(async ({ upstream }: ProxyTask): Promise<ProxyAnswer> => {
  if (app === undefined) {
    app = fastify();
    await app.register(httpProxy, { upstream });
    await app.listen({ host: '127.0.0.1', port: 0 });
  }
  return { port: (app.server.address() as AddressInfo).port };
});
