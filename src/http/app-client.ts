/**
 * The application for what is passed through, by Node's own client: it alone carries everything that HTTP/1.1
 * has, both ways and as a stream: `Expect: 100-continue` to its end, informational answers, trailers of
 * requests, `OPTIONS *`, upgrades. (Deliveries go by undici, which says when the first byte is written.)
 * Each request has a connection of its own; nothing is sent again.
 */
import * as http from 'node:http';
import * as https from 'node:https';
import { appAddress } from '../core/app-address.ts';
import type { RawHeaders } from '../core/delivery.ts';
import type { Clock } from '../core/ports.ts';

export interface AppClientOptions {
  /** `http://host:port`, `https://host:port` or `unix:/path`. */
  readonly url: string;
  readonly connectTimeoutMs: number;
  /** How long an idle connection is kept, unless the application names a shorter time. */
  readonly keepAliveMs: number;
}

export interface AppRequestHead {
  readonly method: string;
  readonly target: string;
  /** Exactly the lines that are sent. */
  readonly headers: RawHeaders;
}

export interface Opened {
  readonly out: http.ClientRequest;
  /** Whether there was a connection, so that bytes may have been sent. */
  readonly reached: () => boolean;
}

export interface AppClient {
  /** Throws when Node finds the request unfit to be sent. */
  open(request: AppRequestHead): Opened;
  close(): void;
}

/** Header bytes of an answer that are taken: as much as common servers send. */
const MAX_HEAD = 64 * 1024;

/** Bytes that one side may be ahead of the other: little, as there may be many streams that nobody takes from. */
const PIECE = { highWaterMark: 16 * 1024 };

export function createAppClient(options: AppClientOptions, clock: Clock): AppClient {
  const { tls, host, port, socketPath, servername } = appAddress(options.url);
  const { Agent, request } = tls ? https : http;
  const agent = new Agent({ keepAlive: true, timeout: options.keepAliveMs, ...PIECE });

  return {
    open({ method, target, headers }) {
      const out = request({
        ...{ agent, host, port, method, path: target, headers, maxHeaderSize: MAX_HEAD },
        // Host, length and coding are among the lines; nothing is added to them.
        setDefaultHeaders: false,
        ...(socketPath !== undefined && { socketPath }),
        // The certificate is the application's own, whatever Host the client wrote.
        ...(servername !== undefined && { servername }),
      });
      // Lines past Node's limit would be dropped unseen.
      out.maxHeadersCount = 0;
      let reached = false;
      out.once('socket', (socket) => {
        if (!socket.connecting) return void (reached = true);
        const cancel = clock.timer(options.connectTimeoutMs, () => out.destroy(new Error('connect timeout')));
        out.once('close', cancel);
        socket.once(tls ? 'secureConnect' : 'connect', () => {
          reached = true;
          cancel();
        });
      });
      return { out, reached: () => reached };
    },
    close: () => agent.destroy(),
  };
}
