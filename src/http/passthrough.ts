/**
 * Everything that is no delivery, passed through to the application and back as a stream: neither side is
 * read faster than the other one takes it, so nothing gathers in memory. What differs from a client's own
 * connection to the application: hop-by-hop lines (RFC 9110 7.6.1), `X-Forwarded-*`, and `Hookonce-*`, which
 * nobody else may say.
 *
 * There is no time limit but that for connecting: streams, uploads and long polls take as long as client and
 * application want. What is bounded is their number, and how long a client may leave what waits for it.
 */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../core/ports.ts';
import type { Connections } from './connections.ts';
import { discardRest } from './discard.ts';
import type { Incoming } from './ingest.ts';
import { FAILURES, type Failure, type Passage } from './passage.ts';
import { relayInformation, relayReply, sendBody } from './relay.ts';
import { respond } from './respond.ts';

export interface PassthroughNeighbours {
  readonly clock: Clock;
  readonly connections: Pick<Connections, 'endless'>;
  /** Whether connections are to be closed with their next answer. */
  readonly closing: () => boolean;
  /** How long the rest of an upload is read that the application does not want, milliseconds. */
  readonly discardMs: number;
  /** How long a client may take nothing of what waits for it, milliseconds. */
  readonly stalledMs: number;
}

/** What it returns passes a request through; it never throws. */
export function createPassthrough(passage: Passage, neighbours: PassthroughNeighbours): (incoming: Incoming) => void {
  const { clock, connections, closing, discardMs, stalledMs } = neighbours;

  return ({ req, res, target }) => {
    const { opened, end } = passage.enter(req, target);
    let failure: Failure | undefined;
    let reply: IncomingMessage | undefined;
    let unmark = (): void => {};

    const fail = (how: Failure): void => {
      if (failure !== undefined || res.destroyed) return;
      failure = how;
      if (res.headersSent) res.destroy();
      else respond(res, FAILURES[how], closing());
    };
    res.once('close', () => {
      unmark();
      if (typeof opened === 'object') opened.out.destroy();
      end(failure ?? (res.writableFinished ? 'proxied' : 'gone'), res.headersSent ? res.statusCode : undefined);
    });
    res.once('finish', () => {
      // The application may have answered before it had the whole request.
      req.unpipe();
      discardRest(req, clock, discardMs);
    });
    if (typeof opened !== 'object') return fail(opened);

    const { out, reached } = opened;
    const lost = (): void => {
      if (reply?.complete !== true) fail(reached() ? 'uncertain' : 'unreachable');
    };
    out.on('error', lost);
    out.once('close', lost);
    out.on('information', (info) => relayInformation(info, res));
    out.once('response', (came) => {
      reply = came;
      if (/^text\/event-stream\b/i.test(came.headers['content-type'] ?? '')) unmark = connections.endless(req.socket);
      res.setTimeout(stalledMs, () => {
        if (res.writableLength > 0) res.destroy();
      });
      try {
        relayReply(came, res, { clock, last: closing(), broken: lost });
      } catch {
        // A head that Node lets in, but does not write.
        fail('uncertain');
      }
    });
    sendBody(req, out, clock);
  };
}
