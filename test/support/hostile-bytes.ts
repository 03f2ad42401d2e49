/** What a client may write: from noise to deliveries that are all but right. For fast-check. */
import * as fc from 'fast-check';
import { requestLike } from './hostile-request.ts';

/** Bytes, one character each, in the pieces in which they leave. */
export type Pieces = readonly string[];

/** `good`: a whole delivery that would be accepted. */
export function hostilePieces(good: Buffer): fc.Arbitrary<Pieces> {
  const noise = fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes));
  const several = fc.array(fc.oneof(requestLike(), fc.constant(good)), { minLength: 2, maxLength: 4 });
  const bytes = fc.oneof(
    { weight: 1, arbitrary: noise },
    { weight: 4, arbitrary: damaged(good) },
    { weight: 6, arbitrary: requestLike() },
    { weight: 2, arbitrary: several.map((all) => Buffer.concat(all)) },
  );
  const cuts = fc.array(fc.nat(4_000), { maxLength: 3 });
  return fc.tuple(bytes, cuts).map(([whole, at]) => cut(whole, at));
}

function cut(bytes: Buffer, at: readonly number[]): Pieces {
  const ends = [...at.filter((end) => end < bytes.length), bytes.length].sort((a, b) => a - b);
  const text = bytes.toString('latin1');
  return ends.map((end, n) => text.slice(n === 0 ? 0 : ends[n - 1], end)).filter((piece) => piece !== '');
}

type Change = (before: Buffer, touched: Buffer, after: Buffer, put: Buffer) => readonly Buffer[];

const CHANGES: readonly Change[] = [
  (before, _touched, after) => [before, after],
  (before, touched, after) => [before, touched, touched, after],
  (before, _touched, after, put) => [before, put, after],
  (before, touched, after, put) => [before, put, touched, after],
  (before) => [before],
];

/** The delivery with parts of it left out, said twice or replaced, with something put in between, or cut short. */
function damaged(good: Buffer): fc.Arbitrary<Buffer> {
  const words = ['\r\n', '\n', '\r', '\0', ' ', ':', '\r\n\r\n', '0\r\n\r\n', 'ÿ'];
  const put = fc.oneof(
    fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(...words).map((text) => Buffer.from(text, 'latin1')),
  );
  const change = fc.record({ from: fc.nat(good.length), length: fc.nat(40), how: fc.constantFrom(...CHANGES), put });
  return fc
    .array(change, { minLength: 1, maxLength: 3 })
    .map((changes) =>
      changes.reduce<Buffer>(
        (bytes, { from, length, how, put: between }) =>
          Buffer.concat(
            how(bytes.subarray(0, from), bytes.subarray(from, from + length), bytes.subarray(from + length), between),
          ),
        good,
      ),
    );
}
