/**
 * A request to change the protocol of a connection, such as to WebSocket. Only when the application agrees
 * (101) do bytes go through unread; with any other answer the connection ends, so that nothing gets past
 * the routes on it.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { RawHeaders } from '../core/delivery.ts';
import type { ProxyReport } from '../core/ports.ts';
import type { Connections } from './connections.ts';
import { head } from './lines.ts';
import { FAILURES, type Failure, type Passage } from './passage.ts';
import { replyLines, upgradeLines } from './proxy-lines.ts';

export interface Upgrade {
  readonly req: IncomingMessage;
  readonly socket: Duplex;
  /** Bytes that came right behind the request. */
  readonly first: Buffer;
  readonly target: string;
  readonly protocol: string;
}

/** What it returns passes an upgrade through; it never throws. `stalledMs`: how long a client may take nothing of what waits for it. */
export function createUpgrades(
  passage: Passage,
  connections: Pick<Connections, 'endless'>,
  stalledMs: number,
): (upgrade: Upgrade) => void {
  return ({ req, socket, first, target, protocol }) => {
    const { opened, end } = passage.enter(req, target, upgradeLines(protocol));
    const unmark = connections.endless(req.socket);
    let outcome: ProxyReport['outcome'] = 'proxied';
    let status: number | undefined;

    socket.on('error', () => {});
    socket.once('close', () => {
      unmark();
      if (typeof opened === 'object') opened.out.destroy();
      end(status === undefined ? 'gone' : outcome, status);
    });
    /** The connection stays what it was, and ends with this answer. */
    const decline = (answered: number, lines: RawHeaders, reason?: string): void => {
      status = answered;
      socket.once('finish', () => socket.destroy());
      socket.write(head(answered, [...lines, 'Connection', 'close'], reason), 'latin1');
    };
    const fail = (how: Failure): void => {
      if (status !== undefined || socket.destroyed) return;
      outcome = how;
      decline(FAILURES[how].status, FAILURES[how].headers);
      socket.end(FAILURES[how].body);
    };
    if (typeof opened !== 'object') return fail(opened);

    const { out, reached } = opened;
    const lost = (): void => fail(reached() ? 'uncertain' : 'unreachable');
    out.on('error', lost);
    out.once('close', lost);
    out.once('response', (reply) => {
      decline(reply.statusCode!, replyLines(reply, req), reply.statusMessage);
      reply.on('error', () => socket.destroy());
      reply.pipe(socket);
    });
    out.once('upgrade', (reply, application, began) => {
      if (socket.destroyed) return void application.destroy();
      status = 101;
      socket.write(head(101, reply.rawHeaders, reply.statusMessage), 'latin1');
      socket.write(began);
      application.setTimeout(0);
      req.socket.setTimeout(stalledMs, () => {
        if (req.socket.writableLength > 0) req.socket.destroy();
      });
      application.write(first);
      join(socket, application);
    });
    out.end();
  };
}

/** Bytes both ways, until either side is closed. */
function join(client: Duplex, application: Socket): void {
  for (const [one, other] of [
    [client, application],
    [application, client],
  ] as const) {
    one.pipe(other);
    // What broke is told by the close that follows.
    one.on('error', () => {});
    one.once('close', () => other.destroy());
  }
}
