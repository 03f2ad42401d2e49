/** What requests and upgrades have in common on their way through: they are counted, opened, and reported once. */
import type { IncomingMessage } from 'node:http';
import { appAddress } from '../core/app-address.ts';
import type { RawHeaders } from '../core/delivery.ts';
import type { Clock, Events, ProxyReport } from '../core/ports.ts';
import { own, type Answer } from './answer.ts';
import { createAppClient, type AppClientOptions, type Opened } from './app-client.ts';
import type { Peers } from './peer.ts';
import { requestLines } from './proxy-lines.ts';

export interface PassageOptions extends AppClientOptions {
  readonly host: 'preserve' | 'upstream';
  /** Requests that are passed through at the same time, streams and upgraded connections included. */
  readonly maxProxied: number;
}

export interface PassageNeighbours {
  readonly clock: Clock;
  readonly events: Pick<Events, 'proxyStarted' | 'proxyEnded'>;
  readonly peers: Peers;
}

export interface Passage {
  /**
   * Counts a request in, and opens it to the application with `more` lines. `end` counts it out, once.
   * Where there are too many, or it cannot be sent, there is a failure instead.
   */
  enter(
    req: IncomingMessage,
    target: string,
    more?: RawHeaders,
  ): {
    readonly opened: Opened | Failure;
    readonly end: (outcome: ProxyReport['outcome'], status: number | undefined) => void;
  };
  /** Another limit from now on. */
  resize(maxProxied: number): void;
  close(): void;
}

export type Failure = Exclude<ProxyReport['outcome'], 'proxied' | 'gone'>;

export const FAILURES: Record<Failure, Answer> = {
  unreachable: own(502, 'unreachable', 'the application could not be reached'),
  uncertain: own(502, 'uncertain', 'the application broke off before it had answered'),
  overloaded: own(503, 'overloaded', 'too much to do right now, try again', ['Retry-After', '1']),
  unfit: own(400, 'rejected', 'a request that cannot be passed on'),
};

export function createPassage(options: PassageOptions, { clock, events, peers }: PassageNeighbours): Passage {
  const client = createAppClient(options, clock);
  const naming = { authority: appAddress(options.url).authority, keepHost: options.host === 'preserve' };
  let { maxProxied } = options;
  let inside = 0;

  const open = (req: IncomingMessage, target: string, more: RawHeaders): Opened | Failure => {
    if (inside > maxProxied) return 'overloaded';
    try {
      return client.open({
        method: req.method!,
        target,
        headers: [...requestLines(req, peers.of(req), naming), ...more],
      });
    } catch {
      // Node finds fault with a line that it let in.
      return 'unfit';
    }
  };

  return {
    enter(req, target, more = []) {
      const begunMs = clock.now();
      const from = peers.client(req);
      inside += 1;
      events.proxyStarted();
      return {
        opened: open(req, target, more),
        end(outcome, status) {
          inside -= 1;
          const report = { outcome, method: req.method!, status, totalMs: clock.now() - begunMs };
          events.proxyEnded(from === undefined ? report : { ...report, client: from });
        },
      };
    },
    resize: (next) => void (maxProxied = next),
    close: () => client.close(),
  };
}
