/**
 * The connections of the server and the requests on them, so that closing neither waits for a client
 * that keeps its idle connection open nor resets one that still waits for its answer. (Node's own
 * `closeIdleConnections` misses a connection that turns idle after it, and one that never sent a byte.)
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';

export interface Connections {
  /** Whether a request that came in whole waits for its answer on it. */
  answering(socket: Socket): boolean;
  /** Closes every connection without a request, now and from now on. */
  closeIdle(): void;
  /** Closes every connection on which a request is still on its way in. */
  closeReceiving(): void;
}

export function trackConnections(server: Server): Connections {
  const requests = new Map<Socket, Set<IncomingMessage>>();
  let closing = false;

  server.on('connection', (socket: Socket) => {
    if (closing) return void socket.destroy();
    requests.set(socket, new Set());
    socket.once('close', () => requests.delete(socket));
  });
  server.on('request', (req, res) => {
    const { socket } = req;
    requests.get(socket)?.add(req);
    res.once('close', () => {
      const open = requests.get(socket);
      open?.delete(req);
      if (closing && open?.size === 0) socket.destroySoon();
    });
  });

  return {
    answering: (socket) => [...(requests.get(socket) ?? [])].some((req) => req.complete),
    closeIdle() {
      closing = true;
      for (const [socket, open] of requests) if (open.size === 0) socket.destroy();
    },
    closeReceiving() {
      for (const [socket, open] of requests) if ([...open].some((req) => !req.complete)) socket.destroy();
    },
  };
}
