import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Done } from '../../src/core/delivery.ts';
import { decodeDone, encodeDone } from '../../src/redis/done.ts';

const plain: Done = {
  status: 200,
  wallMs: 1_790_000_000_123,
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  reply: undefined,
};

const replies = fc.oneof(
  fc.constant(undefined),
  fc.constant('omitted' as const),
  fc.record(
    {
      contentType: fc.option(fc.string({ unit: 'binary', minLength: 1 }), { nil: undefined }),
      body: fc.uint8Array({ maxLength: 4096 }).map((bytes) => Buffer.from(bytes)),
    },
    { noNullPrototype: true },
  ),
);

test('what was written is read back, whatever the first reply held', () => {
  const traces = fc.oneof(
    fc.constant(''),
    fc.uint8Array({ minLength: 16, maxLength: 16 }).map((b) => Buffer.from(b).toString('hex')),
  );
  fc.assert(
    fc.property(
      fc.integer({ min: 100, max: 999 }),
      fc.nat({ max: 2 ** 45 }),
      traces,
      replies,
      (status, wallMs, traceId, reply) => {
        const done: Done = { status, wallMs, traceId, reply };
        const content = encodeDone(done);
        assert.match(content, /^[\x21-\x7e]*$/, 'printable, so that it passes every client and log unharmed');
        assert.deepEqual(decodeDone(content), done);
      },
    ),
  );
});

test('a record with a trace id fits the 44 bytes that Redis keeps in one piece', () => {
  assert.ok(`d1,0,${encodeDone(plain)}`.length <= 44, encodeDone(plain));
});

test('the fingerprint of the body is kept where there is one', () => {
  for (const reply of [undefined, 'omitted' as const, { contentType: 'a/b', body: Buffer.from('x,y') }]) {
    const done: Done = { ...plain, reply, fingerprint: 'Abc-_123' };
    assert.deepEqual(decodeDone(encodeDone(done)), done);
  }
});

test('a trace id of another form is left out rather than misread', () => {
  for (const traceId of ['x', 'a,b', plain.traceId.toUpperCase(), `${plain.traceId}0`]) {
    assert.deepEqual(decodeDone(encodeDone({ ...plain, traceId })), { ...plain, traceId: '' });
  }
});

test('a content of another hand reads as a plain 200', () => {
  for (const content of ['', 'x', ',,,', 'NaN,!,', 'ok']) {
    const { status, reply } = decodeDone(content);
    assert.deepEqual([status, reply], [200, undefined], content);
  }
});
