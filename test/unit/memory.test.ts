import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCollector } from '../../src/core/collect.ts';
import { createMemory } from '../../src/core/memory.ts';

test('what would pass the limit is not taken, and what was taken comes back when the last one has let go', () => {
  const told: number[] = [];
  const memory = createMemory(10, (held) => told.push(held));
  const [one, other] = [memory.open(), memory.open()];
  assert.deepEqual(
    [one.take(6), other.take(5), other.take(4), one.take(1), one.take(0)],
    [true, false, true, false, true],
  );
  one.hold();
  one.release();
  assert.equal(other.take(1), false);
  one.release();
  other.release();
  assert.deepEqual(told, [6, 10, 4, 0]);
});

const pieces = (...texts: string[]): Buffer[] => texts.map((text) => Buffer.from(text));

test('a body is made whole of its pieces, whether its length was stated or not', () => {
  for (const stated of [undefined, 6, 9]) {
    const collector = createCollector(9, undefined, stated);
    for (const piece of pieces('ab', '', 'cde', 'f')) assert.equal(collector.add(piece), 'ok');
    assert.equal(collector.whole().toString(), 'abcdef');
  }
  assert.equal(createCollector(9, undefined).whole().length, 0);
  assert.equal(createCollector(9, undefined, 5).whole().length, 0);
});

test('one piece that is the whole body is not copied', () => {
  const [piece] = pieces('abc');
  const collector = createCollector(9, undefined, 3);
  collector.add(piece!);
  assert.equal(collector.whole().buffer, piece!.buffer);
});

test('pieces are taken from the share as they come; a stated length was taken before', () => {
  const memory = createMemory(5, () => {});
  const share = memory.open();
  const chunked = createCollector(100, share);
  assert.deepEqual(
    pieces('abc', 'de', 'f').map((piece) => chunked.add(piece)),
    ['ok', 'ok', 'memory'],
  );
  share.release();
  const stated = createCollector(100, memory.open(), 50);
  assert.equal(stated.add(Buffer.alloc(50)), 'ok');
});

test('nothing comes beyond the limit, or beyond what was stated', () => {
  assert.equal(createCollector(3, undefined).add(Buffer.alloc(4)), 'too_large');
  const stated = createCollector(9, undefined, 3);
  assert.deepEqual(
    pieces('ab', 'cd').map((piece) => stated.add(piece)),
    ['ok', 'too_large'],
  );
});
