import type { ServerResponse } from 'node:http';
import type { Answer } from './answer.ts';
import { writable } from './lines.ts';

/** A client that takes nothing of its answer for this long is cut off, so that it does not hold memory. */
const STALLED_MS = 30_000;

/**
 * Writes an answer, header lines in their order and case. `last`: the connection is closed after it.
 * A client that has gone away is no error: the delivery was handled all the same.
 */
export function respond(res: ServerResponse, answer: Answer, last: boolean): void {
  if (res.destroyed || res.headersSent) return;
  res.writeHead(answer.status, answer.reason, [...writable(answer.headers), ...(last ? ['Connection', 'close'] : [])]);
  res.end(answer.body);
  if (res.writableLength > 0) res.setTimeout(STALLED_MS, () => res.destroy());
}
