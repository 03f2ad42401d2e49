/** How a sender behaves: it delivers again until somebody takes the event. */
import { header } from '../core/delivery.ts';
import type { Clock } from '../core/ports.ts';
import type { Reply } from './exchange.ts';

export interface Patience {
  /** Fraction of the server's Retry-After that is really waited, so that hours pass in seconds. */
  readonly retryAfterScale: number;
  readonly maxTries: number;
  /** Once aborted, there are no more tries. */
  readonly signal?: AbortSignal;
}

/** What one delivery with its retries came to. */
export interface Delivered {
  /** The last answer was 2xx. */
  readonly ok: boolean;
  readonly tries: number;
  /** Every answer in turn; a try whose connection broke has none. */
  readonly replies: readonly Reply[];
}

/** Sends until a 2xx, a 4xx (senders take it as final) or the end of patience. A broken connection is retried like a 5xx. */
export async function deliverUntilDone(
  clock: Clock,
  send: () => Promise<Reply>,
  patience: Patience,
): Promise<Delivered> {
  const replies: Reply[] = [];
  let tries = 0;
  while (tries < patience.maxTries && patience.signal?.aborted !== true) {
    tries += 1;
    const reply = await send().catch(() => undefined);
    if (reply !== undefined) replies.push(reply);
    if (reply !== undefined && reply.status < 500) break;
    await clock.sleep(pauseMs(clock, reply, tries, patience), patience.signal);
  }
  const last = replies.at(-1);
  return { ok: last !== undefined && last.status >= 200 && last.status < 300, tries, replies };
}

function pauseMs(clock: Clock, reply: Reply | undefined, tries: number, patience: Patience): number {
  const asked = Number(reply && header(reply.headers, 'retry-after'));
  const base = asked > 0 ? asked * 1000 * patience.retryAfterScale : 50 * 2 ** Math.min(tries, 5);
  return base * (0.5 + clock.random());
}
