/** A collector of traces: a real OTLP receiver over HTTP, which remembers every span. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { systemClock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import { readSpans, type ReadSpan } from './otlp-spans.ts';

export interface Collector extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly ReadSpan[];
  /** Paths that were posted to. */
  readonly paths: ReadonlySet<string>;
  /** The span of this name that fits, as soon as it has come. */
  span(name: string, fits?: (span: ReadSpan) => boolean): Promise<ReadSpan>;
}

/** `silent`: it takes connections and never answers. `status`: what it answers with. */
export async function startCollector(options: { silent?: boolean; status?: number } = {}): Promise<Collector> {
  const spans: ReadSpan[] = [];
  const paths = new Set<string>();
  const sockets = new Set<Socket>();
  const server = createServer((request, response) => {
    if (options.silent === true) return;
    void buffer(request).then((body) => {
      paths.add(request.url!);
      if (options.status === undefined)
        spans.push(...readSpans(request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body));
      response.writeHead(options.status ?? 200, { 'content-type': 'application/x-protobuf' }).end();
    });
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    paths,
    span: async (name, fits = () => true) =>
      await until(systemClock, `a span ${name}`, () => spans.find((span) => span.name === name && fits(span))),
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
