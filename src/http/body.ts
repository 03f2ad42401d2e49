/** Request bodies, read whole and untouched, under the limit for one and the limit for all. */
import type { IncomingMessage } from 'node:http';
import { createCollector } from '../core/collect.ts';
import type { Outcome, Rejected } from '../core/delivery.ts';
import type { Share } from '../core/memory.ts';

export type Body =
  | { readonly kind: 'read'; readonly bytes: Buffer }
  | { readonly kind: 'refused'; readonly outcome: Refusal }
  /** The client took longer than it may. */
  | { readonly kind: 'slow' }
  /** The client went away before the body was complete; nobody is there to answer. */
  | { readonly kind: 'gone' };

/** Why a body is not read: it is too large by itself, or the memory for all of them is used up. */
export type Refusal = Rejected | Extract<Outcome, { kind: 'overloaded' }>;

export interface Reading {
  readonly body: Promise<Body>;
  /** The client's time is over. */
  readonly giveUp: () => void;
}

/**
 * A stated length is admitted as a whole before a byte is read (and before `100 Continue`, which is what
 * `start` sends); a chunked body is counted as it comes. What is left of a refused body is thrown away.
 */
export function readBody(req: IncomingMessage, limit: number, share: Share, start: () => void): Reading {
  const ended = Promise.withResolvers<Body>();
  const stated = statedLength(req);
  const refused = (body: Body): Reading => {
    ended.resolve(body);
    return { body: ended.promise, giveUp() {} };
  };
  if (stated !== undefined && stated > limit) return refused(tooLarge(limit));
  if (stated !== undefined && !share.take(stated)) return refused(OVERLOADED);
  start();

  const collector = createCollector(limit, share, stated);
  const stop = (body: Body): void => {
    req.off('data', take);
    req.resume();
    ended.resolve(body);
  };
  const take = (chunk: Buffer): void => {
    switch (collector.add(chunk)) {
      case 'ok':
        return;
      case 'too_large':
        return stop(tooLarge(limit));
      case 'memory':
        return stop(OVERLOADED);
    }
  };
  req.on('data', take);
  req.once('end', () => ended.resolve({ kind: 'read', bytes: collector.whole() }));
  req.once('close', () => {
    if (!req.complete) stop({ kind: 'gone' });
  });
  return { body: ended.promise, giveUp: () => stop({ kind: 'slow' }) };
}

/** Node's parser has checked the digits; a chunked body has no stated length, one without either is empty. */
function statedLength(req: IncomingMessage): number | undefined {
  const length = req.headers['content-length'];
  if (length !== undefined) return Number(length);
  return req.headers['transfer-encoding'] === undefined ? 0 : undefined;
}

const OVERLOADED: Body = { kind: 'refused', outcome: { kind: 'overloaded', limit: 'memory' } };

function tooLarge(limit: number): Body {
  return { kind: 'refused', outcome: tooLargeFor(limit, 'the body') };
}

export function tooLargeFor(limit: number, what: string): Rejected {
  return { kind: 'rejected', reason: 'too_large', message: `${what} is larger than ${limit} bytes` };
}
