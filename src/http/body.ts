/** Request bodies, read whole and untouched, under the limit for one and the limit for all. */
import type { IncomingMessage } from 'node:http';
import type { Outcome, Rejected } from '../core/delivery.ts';
import type { Memory } from './memory.ts';

export type Body =
  /** `release` gives the memory back; call it once the delivery is answered. */
  | { readonly kind: 'read'; readonly bytes: Buffer; readonly release: () => void }
  | { readonly kind: 'refused'; readonly outcome: Refusal }
  /** The client went away before the body was complete; nobody is there to answer. */
  | { readonly kind: 'gone' };

/** Why a body is not read: it is too large by itself, or the memory for all of them is used up. */
export type Refusal = Rejected | Extract<Outcome, { kind: 'overloaded' }>;

/**
 * A stated length is admitted as a whole before a byte is read (and before `100 Continue`, which is what
 * `start` sends); a chunked body is counted as it comes. What is left of a refused body is read and thrown away.
 */
export function readBody(req: IncomingMessage, limit: number, memory: Memory, start: () => void): Promise<Body> {
  const stated = statedLength(req);
  if (stated !== undefined && stated > limit) return Promise.resolve(tooLarge(limit));
  if (stated !== undefined && !memory.take(stated)) return Promise.resolve(OVERLOADED);
  start();

  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    let held = stated ?? 0;
    const release = (): void => {
      memory.give(held);
      held = 0;
    };
    const stop = (body: Body): void => {
      req.off('data', take);
      req.resume();
      release();
      resolve(body);
    };
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > limit) return stop(tooLarge(limit));
      if (stated === undefined) {
        if (!memory.take(chunk.length)) return stop(OVERLOADED);
        held += chunk.length;
      }
      chunks.push(chunk);
    };
    req.on('data', take);
    req.once('end', () => resolve({ kind: 'read', bytes: join(chunks, size), release }));
    req.once('close', () => {
      if (!req.complete) stop({ kind: 'gone' });
    });
  });
}

/** Node's parser has checked the digits; a chunked body has no stated length, one without either is empty. */
function statedLength(req: IncomingMessage): number | undefined {
  const length = req.headers['content-length'];
  if (length !== undefined) return Number(length);
  return req.headers['transfer-encoding'] === undefined ? 0 : undefined;
}

function join(chunks: Buffer[], size: number): Buffer {
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, size);
}

const OVERLOADED: Body = { kind: 'refused', outcome: { kind: 'overloaded', limit: 'memory' } };

function tooLarge(limit: number): Body {
  const message = `the body is larger than ${limit} bytes`;
  return { kind: 'refused', outcome: { kind: 'rejected', reason: 'too_large', message } };
}
