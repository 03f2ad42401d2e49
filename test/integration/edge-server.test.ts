/** The public port, byte by byte, on real sockets. */
import assert from 'node:assert/strict';
import { gzipSync } from 'node:zlib';
import { test } from 'node:test';
import type { AppReply } from '../../src/core/delivery.ts';
import { openStream } from '../support/byte-stream.ts';
import { delivered, route, startEdge } from '../support/edge.ts';
import { ask, headerOf, openConnection, type RawAnswer } from '../support/raw-connection.ts';

const post = (lines: readonly string[], body = '', path = '/hook'): string =>
  [`POST ${path} HTTP/1.1`, 'Host: gateway', ...lines, '', body].join('\r\n');

function assertOutcome(answer: RawAnswer, status: number, outcome: string): void {
  assert.equal(answer.status, status, answer.body);
  assert.equal(headerOf(answer, 'Hookonce-Outcome'), outcome);
  const said = JSON.parse(answer.body) as { outcome?: string; message: string };
  assert.equal(said.outcome, outcome);
  assert.ok(said.message.length > 0);
}

for (const type of [
  'application/json',
  'application/json; charset=utf-8',
  'APPLICATION/JSON',
  'application/json;charset="utf-8"',
  'application/vnd.x+json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'text/plain',
  'json',
  'a/b/c',
  '',
  undefined,
]) {
  test(`B28: a body of content type ${JSON.stringify(type) ?? 'none'} comes through as it is`, async () => {
    await using edge = await startEdge();
    const body = '{"__proto__":1, "q":1.0';
    const lines = type === undefined ? [] : [`Content-Type: ${type}`];
    const answer = await ask(edge.port, post([...lines, `Content-Length: ${body.length}`], body));
    assert.equal(answer.status, 200);
    const [received] = edge.received;
    assert.equal(received!.body.toString(), body);
    assert.deepEqual(received!.headers.slice(2, -2), type === undefined ? [] : ['Content-Type', type]);
  });
}

for (const [name, bytes] of Object.entries({
  'with a length of 0': post(['Content-Type: application/json', 'Content-Length: 0']),
  'without length and type': post([]),
  'of no chunks': post(['Transfer-Encoding: chunked'], '0\r\n\r\n'),
})) {
  test(`B27: an empty body ${name} is empty`, async () => {
    await using edge = await startEdge();
    assert.equal((await ask(edge.port, bytes)).status, 200);
    assert.equal(edge.received[0]!.body.length, 0);
  });
}

test('B22: bytes that come apart, and bytes that are no text, arrive as they were', async () => {
  await using edge = await startEdge();
  const body = Buffer.concat([
    Buffer.from('\ufeff{"t":"café 😀 \u2028"}\r\n'),
    Buffer.from([0, 0xff, 0xfe]),
    gzipSync('{}'),
  ]);
  const connection = await openConnection(edge.port);
  connection.write(post(['Content-Encoding: gzip', `Content-Length: ${body.length}`]));
  for (const byte of body) {
    await new Promise((resolve) => connection.socket.write(Buffer.from([byte]), resolve));
  }
  assert.equal((await connection.answer()).status, 200);
  assert.deepEqual(edge.received[0]!.body, body);
  connection.socket.destroy();
});

test('a chunked body arrives without its chunks and trailers', async () => {
  await using edge = await startEdge();
  const bytes = post(['Transfer-Encoding: chunked', 'Trailer: X'], '3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nX: 1\r\n\r\n');
  assert.equal((await ask(edge.port, bytes)).status, 200);
  assert.equal(edge.received[0]!.body.toString(), 'abcde');
});

test('target and header lines are handed in as they came', async () => {
  await using edge = await startEdge();
  const lines = ['x-B: 2', 'X-A:   padded  ', 'x-b: 1', 'Hookonce-Attempt: 9', 'Content-Length: 0'];
  await ask(edge.port, ['PATCH /HOOK/?a=%zz&b HTTP/1.1', 'hOST: g', ...lines, '', ''].join('\r\n'));
  const { method, target, headers } = edge.received[0]!;
  assert.equal(method, 'PATCH');
  assert.equal(target, '/HOOK/?a=%zz&b');
  assert.deepEqual(headers, [
    'hOST',
    'g',
    'x-B',
    '2',
    'X-A',
    'padded',
    'x-b',
    '1',
    'Hookonce-Attempt',
    '9',
    'Content-Length',
    '0',
  ]);
});

test('every header line is handed in, however many there are', async () => {
  await using edge = await startEdge();
  const many = Array.from({ length: 2_500 }, () => 'a:b');
  assert.equal((await ask(edge.port, post([...many, 'Content-Length: 0']))).status, 200);
  assert.equal(edge.received[0]!.headers.length, 2 * 2_502);
});

test('an application’s reply is relayed: status, lines in order and case, bytes; no line of ours', async () => {
  const reply: AppReply = {
    status: 418,
    headers: [
      'set-cookie',
      'a=1',
      'X-b',
      'caf\u00e9',
      'Set-Cookie',
      'b=2',
      'Content-Type',
      'weird',
      'Date',
      'Thu, 01 Jan 1970 00:00:00 GMT',
    ],
    body: Buffer.from([0, 1, 0xff]),
  };
  await using edge = await startEdge(() => ({ kind: 'refused', reply, attempt: 1 }));
  const answer = await ask(edge.port, post(['Content-Length: 0']));
  assert.equal(answer.status, 418);
  assert.deepEqual(answer.lines.slice(0, 6), [
    'set-cookie: a=1',
    'X-b: caf\u00e9',
    'Set-Cookie: b=2',
    'Content-Type: weird',
    'Date: Thu, 01 Jan 1970 00:00:00 GMT',
    'Content-Length: 3',
  ]);
  assert.equal(answer.body, '\u0000\u0001\u00ff');
  assert.equal(headerOf(answer, 'Hookonce-Outcome'), undefined);
});

test('a phrase beside the status is relayed', async () => {
  const reply: AppReply = { status: 418, reason: 'Short And Stout', headers: [], body: Buffer.alloc(0) };
  await using edge = await startEdge(() => ({ kind: 'refused', reply, attempt: 1 }));
  using client = await openStream(edge.port);
  client.write(post(['Content-Length: 0', 'Connection: close']));
  assert.match(await client.rest(), /^HTTP\/1\.1 418 Short And Stout\r\n/);
});

test('replies without content leave the connection usable', async () => {
  const replies: AppReply[] = [
    { status: 204, headers: ['Content-Length', '5'], body: Buffer.alloc(0) },
    { status: 304, headers: ['Content-Length', '10'], body: Buffer.alloc(0) },
  ];
  await using edge = await startEdge(() => ({ kind: 'refused', reply: replies.shift()!, attempt: 1 }));
  const connection = await openConnection(edge.port);
  for (const status of [204, 304]) {
    connection.write(post(['Content-Length: 0']));
    assert.equal((await connection.answer()).status, status);
  }
  connection.socket.destroy();
});

test('B83: a client of HTTP/1.0 gets an answer that it can read', async () => {
  await using edge = await startEdge();
  const connection = await openConnection(edge.port);
  connection.write('POST /hook HTTP/1.0\r\nContent-Length: 2\r\n\r\nok');
  const answer = await connection.answer();
  assert.equal(answer.status, 200);
  assert.equal(answer.body, 'ok');
  assert.equal(headerOf(answer, 'Transfer-Encoding'), undefined);
  assert.equal(headerOf(answer, 'Connection'), 'close');
  assert.equal(await connection.closed, undefined);
});

test('paths without a route are 404 under one label, whatever they are', async () => {
  await using edge = await startEdge();
  const targets = [
    '/',
    '/hooks',
    '/all',
    '/all/',
    '*',
    '/.env',
    '/%E0%A4%A',
    '/x%00y',
    '//evil.test/x',
    'http://evil.test/x',
    '/a/../../b',
    '/?q',
  ];
  for (const target of targets) {
    const answer = await ask(edge.port, `POST ${target} HTTP/1.1\r\nHost: g\r\nContent-Length: 0\r\n\r\n`);
    assertOutcome(answer, 404, 'rejected');
  }
  for (const method of ['GET', 'PROPFIND', 'TRACE', 'OPTIONS']) {
    const answer = await ask(edge.port, `${method} /nothing HTTP/1.1\r\nHost: g\r\n\r\n`);
    assert.equal(answer.status, 404);
  }
  assert.equal(edge.received.length, 0);
  assert.deepEqual(
    [...new Set(edge.reports.map((report) => `${report.route} ${report.outcome} ${report.reason}`))],
    ['unmatched rejected no_route'],
  );
});

test('B71: an absolute target belongs to the route of its path, and never names a host', async () => {
  await using edge = await startEdge();
  for (const target of [
    'http://evil.test/hook?x=1',
    'HTTPS://evil.test:1/hook?x=1',
    '//evil.test/../hook?x=1',
    '/\\evil.test/hook?x=1',
  ]) {
    assert.equal((await ask(edge.port, post(['Content-Length: 0'], '', target))).status, 200, target);
  }
  assert.deepEqual(
    edge.received.map(({ target }) => target),
    ['/hook?x=1', '/hook?x=1', '//evil.test/../hook?x=1', '/\\evil.test/hook?x=1'],
  );
});

test('a path that can be read as that of two routes is refused', async () => {
  await using edge = await startEdge();
  assertOutcome(await ask(edge.port, post(['Content-Length: 0'], '', '/all/../hook')), 400, 'rejected');
  assert.equal(edge.received.length, 0);
});

test('B70: other methods on a route are 405 at once, with or without a body', async () => {
  await using edge = await startEdge();
  const get = await ask(
    edge.port,
    'GET /hook?hub.mode=subscribe HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\n\r\nhello',
  );
  assertOutcome(get, 405, 'rejected');
  assert.equal(headerOf(get, 'Allow'), 'POST, PUT, PATCH, DELETE');
  for (const method of ['GET', 'OPTIONS', 'PROPFIND', 'TRACE']) {
    assert.equal((await ask(edge.port, `${method} /hook HTTP/1.1\r\nHost: g\r\n\r\n`)).status, 405);
  }
  for (const method of ['PUT', 'PATCH', 'DELETE']) {
    assert.equal((await ask(edge.port, `${method} /hook HTTP/1.1\r\nHost: g\r\n\r\n`)).status, 200);
  }
  assert.deepEqual([...new Set(edge.reports.map(({ reason }) => reason))], ['method', undefined]);
});

test('a HEAD request gets no body and leaves the connection usable', async () => {
  await using edge = await startEdge();
  const connection = await openConnection(edge.port);
  connection.write('HEAD /hook HTTP/1.1\r\nHost: g\r\n\r\n');
  connection.write(post(['Content-Length: 0', 'Connection: close']));
  const chunks: Buffer[] = [];
  connection.socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await connection.closed;
  const said = Buffer.concat(chunks).toString();
  assert.match(said, /^HTTP\/1\.1 405 [^]*?\r\n\r\nHTTP\/1\.1 200 /);
});

for (const [name, bytes] of Object.entries({
  'length and chunks': post(['Content-Length: 4', 'Transfer-Encoding: chunked'], '1\r\nZ\r\n0\r\n\r\n'),
  'two lengths': post(['Content-Length: 1', 'Content-Length: 2'], 'ab'),
  'a coding that is unknown': post(['Transfer-Encoding: xchunked'], '1\r\nZ\r\n0\r\n\r\n'),
  'a length with a sign': post(['Content-Length: +1'], 'a'),
  'a chunk that is no chunk': post(['Transfer-Encoding: chunked'], 'zz\r\n'),
  'no Host': 'POST /hook HTTP/1.1\r\nContent-Length: 0\r\n\r\n',
  'two Hosts': post(['Host: other', 'Content-Length: 0']),
  'a space before the colon': post(['X : 1', 'Content-Length: 0']),
  'no request line': 'hello\r\n\r\n',
})) {
  test(`B67: a request with ${name} is refused, and nothing is handed on`, async () => {
    await using edge = await startEdge();
    const answer = await ask(edge.port, bytes);
    assertOutcome(answer, 400, 'rejected');
    assert.equal(edge.received.length, 0);
    assert.equal((await ask(edge.port, post(['Content-Length: 0']))).status, 200);
  });
}

for (const [name, bytes] of Object.entries({
  'a coding that is not undone': post(['Transfer-Encoding: gzip, chunked'], '0\r\n\r\n'),
  'chunks in HTTP/1.0': 'POST /hook HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
})) {
  test(`a request with ${name} is refused, and its connection closed`, async () => {
    await using edge = await startEdge();
    const connection = await openConnection(edge.port);
    connection.write(bytes);
    assertOutcome(await connection.answer(), 400, 'rejected');
    await connection.closed;
    assert.equal(edge.received.length, 0);
  });
}

test('headers that are too large are 431', async () => {
  await using edge = await startEdge();
  assertOutcome(await ask(edge.port, post([`X: ${'x'.repeat(20_000)}`])), 431, 'rejected');
});

test('a broken request behind one in flight closes the connection without an answer in its place', async () => {
  const go = Promise.withResolvers<void>();
  await using edge = await startEdge(async () => {
    await go.promise;
    return delivered(200);
  });
  const connection = await openConnection(edge.port);
  connection.write(post(['Content-Length: 0']));
  await edge.arrived(1);
  connection.write('garbage\r\n\r\n');
  await assert.rejects(connection.answer(), /closed after ""/);
  go.resolve();
});

test('B64: Expect: 100-continue is answered before the body is read, another expectation with 417', async () => {
  await using edge = await startEdge();
  const connection = await openConnection(edge.port);
  connection.write(post(['Expect: 100-continue', 'Content-Length: 2']));
  assert.equal((await connection.answer()).status, 100);
  connection.write('ok');
  assert.equal((await connection.answer()).status, 200);
  connection.socket.destroy();
  assert.equal(edge.received[0]!.body.toString(), 'ok');
  assertOutcome(await ask(edge.port, post(['Expect: something-else', 'Content-Length: 2'])), 417, 'rejected');
});

test('limits are looked at before a client is told to continue; then its connection ends', async () => {
  await using edge = await startEdge();
  for (const [bytes, status] of [
    [post(['Expect: 100-continue', 'Content-Length: 1001']), 413],
    [post(['Expect: 100-continue', 'Content-Length: 2'], '', '/nothing'), 404],
    [post(['Expect: 100-continue', 'Content-Length: 2']).replace('POST', 'GET'), 405],
  ] as const) {
    const connection = await openConnection(edge.port);
    connection.write(bytes);
    const answer = await connection.answer();
    assert.equal(answer.status, status);
    assert.equal(headerOf(answer, 'Connection'), 'close');
    assert.equal(await connection.closed, undefined);
  }
});

test('B100: a body larger than the limit is 413, stated or chunked, and the connection goes on', async () => {
  await using edge = await startEdge();
  const large = 'x'.repeat(1_001);
  const chunked = `${(1001).toString(16)}\r\n${large}\r\n0\r\n\r\n`;
  const connection = await openConnection(edge.port);
  connection.write(post(['Content-Length: 1001'], large));
  assertOutcome(await connection.answer(), 413, 'rejected');
  connection.write(post(['Transfer-Encoding: chunked'], chunked));
  assertOutcome(await connection.answer(), 413, 'rejected');
  connection.write(post(['Content-Length: 1000'], 'x'.repeat(1_000)));
  assert.equal((await connection.answer()).status, 200);
  connection.socket.destroy();
  assert.equal(edge.received.length, 1);
  assert.equal(edge.buffered(), 0);
  assert.deepEqual(
    edge.reports.map(({ reason }) => reason),
    ['too_large', 'too_large', undefined],
  );
});

test('B100: memory is admitted by the stated length before the body comes, and given back', async () => {
  const go = Promise.withResolvers<void>();
  await using edge = await startEdge(async () => {
    await go.promise;
    return delivered(200);
  });
  // Nothing of these two bodies has come yet; what they state is held for them.
  const [one, two] = [await openConnection(edge.port), await openConnection(edge.port)];
  for (const connection of [one, two]) connection.write(post(['Expect: 100-continue', 'Content-Length: 1000']));
  for (const connection of [one, two]) assert.equal((await connection.answer()).status, 100);
  assert.equal(edge.buffered(), 2_000);

  const refused = await ask(edge.port, post(['Content-Length: 501']));
  assertOutcome(refused, 503, 'overloaded');
  assert.equal(headerOf(refused, 'Retry-After'), '1');
  const chunked = await ask(edge.port, post(['Transfer-Encoding: chunked'], `1f5\r\n${'x'.repeat(501)}\r\n0\r\n\r\n`));
  assertOutcome(chunked, 503, 'overloaded');
  const small = ask(edge.port, post(['Content-Length: 500'], 'x'.repeat(500)));
  await edge.arrived(1);

  two.socket.destroy();
  one.write('x'.repeat(1_000));
  go.resolve();
  assert.equal((await one.answer()).status, 200);
  assert.equal((await small).status, 200);
  one.socket.destroy();
  assert.deepEqual(edge.reports.map(({ reason }) => reason).slice(0, 2), ['memory', 'memory']);
});

test('a client that goes away in the middle of its body: nothing is handed on, its memory is given back', async () => {
  await using edge = await startEdge();
  const connection = await openConnection(edge.port);
  connection.write(post(['Expect: 100-continue', 'Content-Length: 900']));
  await connection.answer();
  connection.write('half');
  connection.socket.destroy();
  await connection.closed;
  // The server sees the end of a connection in its own turn: other clients are served meanwhile.
  for (let i = 0; i < 50 && edge.buffered() > 0; i++) await ask(edge.port, post(['Content-Length: 0']));
  assert.equal(edge.buffered(), 0);
  assert.ok(edge.received.every(({ body }) => body.length === 0));
});

test('a client that goes away while its delivery is handled changes nothing', async () => {
  const go = Promise.withResolvers<void>();
  const handled = Promise.withResolvers<void>();
  await using edge = await startEdge(async () => {
    await go.promise;
    setImmediate(handled.resolve);
    return delivered(200);
  });
  const connection = await openConnection(edge.port);
  connection.write(post(['Content-Length: 2'], 'ok'));
  await edge.arrived(1);
  connection.socket.resetAndDestroy();
  await connection.closed;
  go.resolve();
  await handled.promise;
  assert.equal(edge.reports[0]!.outcome, 'delivered');
  assert.equal(edge.inFlight(), 0);
  // Its memory is given back when the server has seen the end of the connection.
  for (let i = 0; i < 50 && edge.buffered() > 0; i++) await ask(edge.port, post(['Content-Length: 0']));
  assert.equal(edge.buffered(), 0);
});

test('B36: a handler that throws is 500 without details, and the process lives', async () => {
  let first = true;
  await using edge = await startEdge(() => {
    if (!first) return delivered(200);
    first = false;
    throw new Error('10.0.0.9:6379 secret');
  });
  const answer = await ask(edge.port, post(['Content-Length: 0']));
  assertOutcome(answer, 500, 'uncertain');
  assert.doesNotMatch(answer.body, /10\.0\.0\.9|secret|at /);
  assert.equal(edge.warnings.length, 1);
  assert.equal(edge.inFlight(), 0);
  assert.equal((await ask(edge.port, post(['Content-Length: 0']))).status, 200);
});

test('what is learnt on the way is in the report', async () => {
  await using edge = await startEdge((_received, trail) => {
    Object.assign(trail, { key: 'k', attempt: 2, claimMs: 1, upstreamMs: 3 });
    return delivered(201);
  });
  await ask(edge.port, post(['Content-Length: 0'], '', '/all/x/y'));
  const { totalMs, ...report } = edge.reports[0]!;
  assert.ok(totalMs >= 0);
  assert.deepEqual(report, {
    route: 'all',
    outcome: 'delivered',
    status: 201,
    key: 'k',
    attempt: 2,
    claimMs: 1,
    upstreamMs: 3,
    client: '127.0.0.1',
  });
});

test('pipelined deliveries are answered in their order', async () => {
  const go = Promise.withResolvers<void>();
  await using edge = await startEdge(async ({ body }) => {
    if (body.toString() === '1') await go.promise;
    else go.resolve();
    return delivered(200, body.toString());
  });
  const connection = await openConnection(edge.port);
  connection.write(post(['Content-Length: 1'], '1') + post(['Content-Length: 1'], '2'));
  assert.equal((await connection.answer()).body, '1');
  assert.equal((await connection.answer()).body, '2');
  connection.socket.destroy();
});

test('B86: an upgrade on a route is 501 at once, nothing is handed on, and the process lives', async () => {
  await using edge = await startEdge();
  for (const lines of [
    ['GET /hook HTTP/1.1', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='],
    ['POST /hook HTTP/1.1', 'Connection: keep-alive, upgrade', 'Upgrade: h2c', 'Content-Length: 0'],
  ]) {
    const connection = await openConnection(edge.port);
    connection.write([...lines, 'Host: g', '', ''].join('\r\n'));
    assertOutcome(await connection.answer(), 501, 'rejected');
    await connection.closed;
  }
  const reset = await openConnection(edge.port);
  reset.write('GET /hook HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  reset.socket.resetAndDestroy();
  await reset.closed;
  assert.equal(edge.received.length, 0);
  assert.equal((await ask(edge.port, post(['Content-Length: 0']))).status, 200);
});

test('a client that offers HTTP/2 with a delivery, as Java’s does, is answered in HTTP/1.1', async () => {
  await using edge = await startEdge();
  const offer = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAEAAEAAAAIAAAAB'];
  assert.equal((await ask(edge.port, post([...offer, 'Content-Length: 2'], 'ok'))).status, 200);
  assert.equal(edge.received[0]!.body.toString(), 'ok');
});

test('a port that is taken is an error at once', async () => {
  await using edge = await startEdge();
  await assert.rejects(startEdge(undefined, { port: edge.port }), { code: 'EADDRINUSE' });
});

test('two routes with one path are an error at once', async () => {
  const routes = [route('a', '/x/y'), route('b', '/X//y/')];
  await assert.rejects(startEdge(undefined, { routes }), /routes a and b have the same path/);
});
