/** An application at the level of bytes: it sees requests as they came and answers whatever bytes a test wants. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';

export interface RawRequest {
  /** Request line and header lines, one character per byte, without the empty line. */
  readonly lines: readonly string[];
  readonly body: Buffer;
  readonly socket: Socket;
  /** Which of the connections it came on, counted from 1. */
  readonly connection: number;
}

export interface RawApplication extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly RawRequest[];
  /** Connections that are open now. */
  readonly open: ReadonlySet<Socket>;
  /** The n-th request, counted from 0, as soon as it is there whole. */
  arrived(n: number): Promise<RawRequest>;
  /** Nobody listens any more; open connections are reset. */
  down(): Promise<void>;
}

export async function startRawApplication(serve: (request: RawRequest) => void): Promise<RawApplication> {
  const requests: RawRequest[] = [];
  const waiting = new Map<number, PromiseWithResolvers<RawRequest>>();
  const open = new Set<Socket>();
  let connections = 0;

  const take = (request: RawRequest): void => {
    requests.push(request);
    waiting.get(requests.length - 1)?.resolve(request);
    serve(request);
  };
  const server = createServer((socket) => {
    open.add(socket);
    const connection = (connections += 1);
    let pending: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      for (let request = split(pending); request !== undefined; request = split(pending)) {
        pending = request.rest;
        take({ lines: request.lines, body: request.body, socket, connection });
      }
    });
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const down = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    for (const socket of open) socket.resetAndDestroy();
    await closed;
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    open,
    async arrived(n) {
      const there = requests[n];
      if (there !== undefined) return there;
      const wait = waiting.get(n) ?? Promise.withResolvers<RawRequest>();
      waiting.set(n, wait);
      return await wait.promise;
    },
    down,
    [Symbol.asyncDispose]: down,
  };
}

/** The first whole request in the bytes; the gateway always states the length of a body. */
function split(bytes: Buffer): { lines: string[]; body: Buffer; rest: Buffer } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const lines = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const stated = lines.find((line) => /^content-length:/i.test(line));
  const length = Number(stated?.split(':')[1] ?? 0);
  const start = end + 4;
  if (bytes.length < start + length) return undefined;
  return { lines, body: bytes.subarray(start, start + length), rest: bytes.subarray(start + length) };
}
