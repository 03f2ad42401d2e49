/** Bodies with a content coding, on a real port: what is decoded, and how far. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import type { Outcome, Received } from '../../src/core/delivery.ts';
import { createMemory } from '../../src/core/memory.ts';
import { delivered, startEdge, type Edge } from '../support/edge.ts';
import { ask, type RawAnswer } from '../support/raw-connection.ts';

const TEXT = Buffer.from('{"id":"e3"}');

/** An edge whose deliveries are answered with what their content came to. */
async function start(memory = 2_500): Promise<{ edge: Edge; contents: (Buffer | Outcome | undefined)[] }> {
  const contents: (Buffer | Outcome | undefined)[] = [];
  const handle = async (received: Received): Promise<Outcome> => {
    const content = await received.decode?.();
    contents.push(content);
    return content === undefined || Buffer.isBuffer(content) ? delivered(200) : content;
  };
  return { edge: await startEdge(handle, { memory: createMemory(memory, () => {}) }), contents };
}

async function post(edge: Edge, body: Buffer, ...codings: string[]): Promise<RawAnswer> {
  const lines = codings.map((coding) => `Content-Encoding: ${coding}`);
  const head = ['POST /hook HTTP/1.1', 'Host: g', ...lines, `Content-Length: ${body.length}`, '', ''].join('\r\n');
  return await ask(edge.port, Buffer.concat([Buffer.from(head), body]));
}

for (const [body, ...codings] of [
  [gzipSync(TEXT), 'gzip'],
  [gzipSync(TEXT), 'X-GZIP'],
  [deflateSync(TEXT), 'deflate'],
  [brotliCompressSync(TEXT), 'br'],
  [brotliCompressSync(gzipSync(TEXT)), 'gzip, br'],
  [brotliCompressSync(gzipSync(TEXT)), 'gzip', 'br'],
  [gzipSync(TEXT), 'identity, gzip'],
] as [Buffer, ...string[]][]) {
  test(`B30: the content under ${codings.join(' and ')} can be read, the body stays as it came`, async () => {
    const { edge, contents } = await start();
    await using _ = edge;
    assert.equal((await post(edge, body, ...codings)).status, 200);
    assert.deepEqual(contents, [TEXT]);
    assert.deepEqual(edge.received[0]!.body, body);
  });
}

test('a body without a coding has nothing to decode', async () => {
  const { edge, contents } = await start();
  await using _ = edge;
  await post(edge, TEXT);
  await post(edge, TEXT, 'identity');
  assert.deepEqual(contents, [undefined, undefined]);
});

for (const [name, body, coding, status] of [
  ['a coding that is unknown', TEXT, 'zstd', 415],
  ['a word that is no coding', TEXT, 'constructor', 415],
  ['more codings than any sender applies', gzipSync(gzipSync(gzipSync(TEXT))), 'gzip, gzip, gzip', 415],
  ['a body that is not what it says', TEXT, 'gzip', 400],
  ['a body that is cut', gzipSync(TEXT).subarray(0, -4), 'gzip', 400],
] as const) {
  test(`B30: ${name} is ${status}`, async () => {
    const { edge } = await start();
    await using _ = edge;
    assert.equal((await post(edge, body, coding)).status, status);
    assert.equal((await post(edge, TEXT)).status, 200);
  });
}

test('B30: a body that stands for more than the limit is 413, wherever it goes beyond it', async () => {
  const { edge } = await start();
  await using _ = edge;
  const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024));
  const nested = gzipSync(bomb);
  assert.ok(nested.length < 1_000);
  assert.equal((await post(edge, nested, 'gzip, gzip')).status, 413);
  assert.equal((await post(edge, gzipSync(Buffer.alloc(1_001)), 'gzip')).status, 413);
  assert.equal((await post(edge, gzipSync(Buffer.alloc(1_000)), 'gzip')).status, 200);
});

test('what a coding hides counts for the limit of all bodies, until the delivery is answered', async () => {
  const { edge } = await start(1_000);
  await using _ = edge;
  assert.equal((await post(edge, gzipSync(Buffer.alloc(990)), 'gzip')).status, 503);
  assert.equal((await post(edge, gzipSync(Buffer.alloc(900)), 'gzip')).status, 200);
  assert.equal((await post(edge, gzipSync(Buffer.alloc(900)), 'gzip')).status, 200);
});
