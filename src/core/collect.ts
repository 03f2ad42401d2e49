/** A body that comes in pieces, made whole under a limit of its own and the limit for all. */
import type { Share } from './memory.ts';

export type Collecting = 'ok' | 'too_large' | 'memory';

export interface Collector {
  /** Anything but `ok` is final: what has come is dropped. */
  add(piece: Uint8Array): Collecting;
  whole(): Buffer;
}

/**
 * `stated`: the length that was announced and has been taken from the share already; nothing may come beyond
 * it. Without one each piece is taken as it comes. `share` undefined: nobody counts.
 */
export function createCollector(limit: number, share: Share | undefined, stated?: number): Collector {
  let pieces: Uint8Array[] = [];
  /** Filled as the pieces come, so that they are not held twice. */
  let whole: Buffer | undefined;
  let size = 0;

  const drop = (why: Collecting): Collecting => {
    pieces = [];
    whole = undefined;
    return why;
  };
  return {
    add(piece) {
      const at = size;
      size += piece.length;
      if (size > (stated ?? limit)) return drop('too_large');
      if (stated === undefined) {
        if (share?.take(piece.length) === false) return drop('memory');
        pieces.push(piece);
      } else if (at === 0 && piece.length === stated) {
        pieces.push(piece);
      } else {
        whole ??= Buffer.allocUnsafe(stated);
        whole.set(piece, at);
      }
      return 'ok';
    },
    whole() {
      if (whole !== undefined) return whole.subarray(0, size);
      const [first] = pieces;
      if (pieces.length === 1 && first) return Buffer.from(first.buffer, first.byteOffset, first.length);
      return Buffer.concat(pieces, size);
    },
  };
}
