/**
 * What a content coding hides (RFC 9110 8.4.1), up to a limit: a few kilobytes can stand for gigabytes. It
 * is read piece by piece, off the event loop, and counts as memory of its delivery.
 */
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { createCollector } from '../core/collect.ts';
import { allHeaders, type RawHeaders, type Rejected } from '../core/delivery.ts';
import type { Share } from '../core/memory.ts';
import { tooLargeFor, type Refusal } from './body.ts';

const DECODERS = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
} as const;

/** More than any sender applies, so that nobody makes the gateway decode for ever. */
const MOST = 2;

/** The codings of a body in the order in which they were applied; empty where there is none. */
export function codingsOf(headers: RawHeaders): string[] {
  return allHeaders(headers, 'content-encoding')
    .flatMap((line) => line.split(','))
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
}

/** Undoes the codings, the last one first. */
export async function decode(
  wire: Buffer,
  codings: readonly string[],
  limit: number,
  share: Share,
): Promise<Buffer | Refusal> {
  if (codings.length > MOST || codings.some((coding) => !Object.hasOwn(DECODERS, coding))) return UNKNOWN;
  let body = wire;
  for (const coding of codings.toReversed()) {
    const next = await decodeOne(body, coding as keyof typeof DECODERS, limit, share);
    if (!Buffer.isBuffer(next)) return next;
    body = next;
  }
  return body;
}

async function decodeOne(
  coded: Buffer,
  coding: keyof typeof DECODERS,
  limit: number,
  share: Share,
): Promise<Buffer | Refusal> {
  const collector = createCollector(limit, share);
  let refused: Refusal | undefined;
  try {
    await pipeline([coded], DECODERS[coding](), async (pieces: AsyncIterable<Buffer>) => {
      for await (const piece of pieces) {
        const added = collector.add(piece);
        if (added === 'ok') continue;
        refused = added === 'memory' ? { kind: 'overloaded', limit: 'memory' } : tooLargeFor(limit, 'the decoded body');
        return;
      }
    });
  } catch {
    refused ??= { kind: 'rejected', reason: 'bad_request', message: `the body is no whole ${coding}` };
  }
  return refused ?? collector.whole();
}

const UNKNOWN: Rejected = {
  kind: 'rejected',
  reason: 'unsupported_coding',
  message: `the body has a content coding that is none of ${Object.keys(DECODERS).join(', ')}`,
};
