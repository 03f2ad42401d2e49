/** Requests on no route, byte by byte, between a client and an application on real sockets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { test } from 'node:test';
import { buffer } from 'node:stream/consumers';
import { openStream } from '../support/byte-stream.ts';
import { proxyingEdge, startProxied } from '../support/proxied.ts';
import { startRawApplication } from '../support/raw-application.ts';
import { ask, headerOf, openConnection } from '../support/raw-connection.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const request = (first: string, ...lines: string[]): string =>
  [`${first} HTTP/1.1`, 'Host: app.example', ...lines, '', ''].join('\r\n');

test('target, lines and body of a request arrive as they were, and three lines are added', async () => {
  await using application = await startRawApplication(({ socket }) => void socket.write(OK));
  await using edge = await proxyingEdge({ url: application.url });
  const target = '/a%2Fb/%2e%2e/..//x;y?q=%zz&q=a+b';
  const lines = [
    'x-lower: 1',
    'X-Twice: b',
    'x-TWICE: a',
    'X-Latin: caf\u00e9',
    'X-Empty: ',
    'Content-Length: 2',
    'Cookie: a=1',
  ];
  const answer = await ask(edge.port, `${request(`PUT ${target}`, ...lines)}hi`);
  assert.equal(answer.status, 200);
  const [came] = application.requests;
  assert.deepEqual(came!.lines, [
    ...[`PUT ${target} HTTP/1.1`, 'Host: app.example', ...lines],
    ...['X-Forwarded-For: 127.0.0.1', 'X-Forwarded-Proto: http'],
  ]);
  assert.equal(came!.body.toString(), 'hi');
});

test('status, reason, lines and body of an answer arrive as they were', async () => {
  const reply =
    'HTTP/1.1 299 Fancy That\r\nset-cookie: a\r\nX-b: caf\u00e9\r\nSet-Cookie: b\r\nDate: then\r\nContent-Length: 3\r\nETag: "x"\r\n\r\n\x00\x01\xff';
  await using application = await startRawApplication(({ socket }) => void socket.write(reply, 'latin1'));
  await using edge = await proxyingEdge({ url: application.url });
  using client = await openStream(edge.port);
  client.write(request('GET /'));
  assert.equal(
    // oxlint-disable-next-line no-control-regex -- these very bytes
    await client.until(/\x00\x01\xff/),
    reply.replace('\r\n\r\n', '\r\nConnection: keep-alive\r\nKeep-Alive: timeout=75\r\n\r\n'),
  );
});

for (const method of ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE', 'POST', 'REPORT']) {
  test(`${method} without a body goes through without a length or chunks`, async () => {
    await using application = await startRawApplication(
      ({ socket }) => void socket.write(method === 'HEAD' ? OK.slice(0, -2) : OK),
    );
    await using edge = await proxyingEdge({ url: application.url });
    using client = await openStream(edge.port);
    client.write(request(`${method} /x`, 'Connection: close'));
    assert.match(await client.rest(), /^HTTP\/1\.1 200 OK\r\n/);
    assert.deepEqual(application.requests[0]!.lines, [
      ...[`${method} /x HTTP/1.1`, 'Host: app.example', 'X-Forwarded-For: 127.0.0.1', 'X-Forwarded-Proto: http'],
    ]);
  });
}

test('a question about the server as a whole goes through', async () => {
  await using application = await startRawApplication(({ socket }) => void socket.write(OK));
  await using edge = await proxyingEdge({ url: application.url });
  assert.equal((await ask(edge.port, request('OPTIONS *'))).status, 200);
  assert.equal(application.requests[0]!.lines[0], 'OPTIONS * HTTP/1.1');
  assert.equal((await ask(edge.port, request('GET *'))).status, 404);
});

test('B71: no target chooses the host', async () => {
  await using application = await startRawApplication(({ socket }) => void socket.write(OK));
  await using edge = await proxyingEdge({ url: application.url });
  for (const [target, came] of [
    ['//evil.test/x', '//evil.test/x'],
    ['///x', '///x'],
    ['http://evil.test/x', '/x'],
    ['/\\\\evil.test', '/\\\\evil.test'],
    ['/a/../../b', '/a/../../b'],
  ] as const) {
    assert.equal((await ask(edge.port, request(`GET ${target}`))).status, 200, target);
    assert.equal(application.requests.at(-1)!.lines[0], `GET ${came} HTTP/1.1`);
    assert.equal(application.requests.at(-1)!.lines[1], 'Host: app.example');
  }
  const connect = await openConnection(edge.port);
  connect.write('CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test:443\r\n\r\n');
  assert.equal((await connect.answer()).status, 405);
  await connect.closed;
});

test('chunks and trailers go through, both ways', async () => {
  const trailers: string[][] = [];
  await using proxied = await startProxied((req, res) => {
    void buffer(req).then((body) => {
      trailers.push([String(req.headers['transfer-encoding']), body.toString(), ...req.rawTrailers]);
      res.writeHead(200, ['Trailer', 'X-Sum', 'Trailer', 'X-Count']);
      res.write('a');
      res.addTrailers([
        ['X-Sum', '1'],
        ['x-count', '2'],
      ] as never);
      res.end('b');
    });
  });
  using client = await openStream(proxied.port);
  client.write(request('POST /', 'Transfer-Encoding: chunked', 'Trailer: X-Md5', 'Connection: close'));
  client.write('3;ext=1\r\nabc\r\n1\r\nd\r\n0\r\nX-Md5: m\r\nHookonce-Attempt: 1\r\n\r\n');
  const answer = await client.rest();
  assert.deepEqual(trailers, [['chunked', 'abcd', 'X-Md5', 'm']]);
  assert.match(answer, /\r\nTrailer: X-Sum\r\nTrailer: X-Count\r\n/);
  assert.match(answer, /\r\n0\r\nX-Sum: 1\r\nx-count: 2\r\n\r\n$/);
});

test('B80: answers without content, then a normal one', async () => {
  const replies = [
    'HTTP/1.1 204 No Content\r\n\r\n',
    'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello',
    'HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\nETag: "x"\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nok',
    OK,
  ];
  await using application = await startRawApplication(({ socket }) => void socket.write(replies.shift()!));
  await using edge = await proxyingEdge({ url: application.url });
  const client = await openConnection(edge.port);
  for (const [status, body] of [
    [204, ''],
    [204, ''],
    [304, ''],
    [200, ''],
    [206, 'ok'],
    [200, 'ok'],
  ] as const) {
    client.write(request('GET /', 'Range: bytes=0-1'));
    const answer = await client.answer();
    assert.deepEqual([answer.status, answer.body], [status, body]);
    if (status === 206) assert.equal(headerOf(answer, 'Content-Range'), 'bytes 0-1/9');
  }
  client.socket.destroy();
});

test('B81: a compressed answer keeps its bytes and its lines, whatever the client asked for', async () => {
  const gzip = '\x1f\x8b\x08\x00\x00\x00\x00\x00';
  await using application = await startRawApplication(
    ({ socket }) =>
      void socket.write(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\n${gzip}`, 'latin1'),
  );
  await using edge = await proxyingEdge({ url: application.url });
  for (const lines of [['Accept-Encoding: gzip'], []]) {
    const answer = await ask(edge.port, request('GET /', ...lines));
    assert.deepEqual([answer.body, headerOf(answer, 'Content-Encoding')], [gzip, 'gzip']);
  }
});

test('B83: a client of HTTP/1.0 gets a chunked answer without its chunks, the application HTTP/1.1 and a Host', async () => {
  const seen: (string | undefined)[] = [];
  await using proxied = await startProxied((req, res) => {
    seen.push(req.httpVersion, req.headers.host);
    res.writeHead(200, ['Trailer', 'X-Sum']);
    res.write('o');
    res.end('k');
  });
  using client = await openStream(proxied.port);
  client.write('GET / HTTP/1.0\r\n\r\n');
  const answer = await client.rest();
  assert.doesNotMatch(answer, /transfer-encoding|trailer/i);
  assert.match(answer, /\r\nConnection: close\r\n\r\nok$/);
  assert.deepEqual(seen, ['1.1', new URL(proxied.url).host]);
});

test('informational answers come before the answer, in their place', async () => {
  await using application = await startRawApplication(
    ({ socket }) =>
      void socket.write(
        `HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nlink: </b>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n${OK}`,
      ),
  );
  await using edge = await proxyingEdge({ url: application.url });
  using client = await openStream(edge.port);
  client.write(request('GET /', 'Connection: close'));
  assert.match(
    await client.rest(),
    /^HTTP\/1\.1 103 Early Hints\r\nLink: <\/a>\r\nlink: <\/b>\r\n\r\nHTTP\/1\.1 102 Processing\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*ok$/,
  );
});

test('B64: whether to continue is the application’s decision', async () => {
  const decisions = [true, false];
  await using proxied = await startProxied(() => assert.fail('no request without its decision'));
  proxied.application.on('checkContinue', (req: IncomingMessage, res: ServerResponse) => {
    if (decisions.shift() !== true) return void res.writeHead(413, ['Content-Length', '0']).end();
    res.writeContinue();
    void buffer(req).then((body) => res.writeHead(200, ['Content-Length', `${body.length}`]).end(body));
  });
  const taken = await openConnection(proxied.port);
  taken.write(request('POST /', 'Expect: 100-continue', 'Content-Length: 2'));
  assert.equal((await taken.answer()).status, 100);
  taken.write('ok');
  assert.equal((await taken.answer()).body, 'ok');
  taken.socket.destroy();

  const refused = await openConnection(proxied.port);
  refused.write(request('POST /', 'Expect: 100-continue', 'Content-Length: 2'));
  const answer = await refused.answer();
  assert.deepEqual([answer.status, headerOf(answer, 'Connection')], [413, 'close']);
  assert.equal(await refused.closed, undefined);
});

test('a stream of events begins at once, and each event comes when it is sent', async () => {
  let send!: (event: string) => void;
  await using proxied = await startProxied((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.flushHeaders();
    send = (event) => void res.write(`data: ${event}\n\n`);
  });
  using client = await openStream(proxied.port);
  client.write(request('GET /events'));
  await client.until(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n/);
  for (const event of ['one', 'two', 'three']) {
    send(event);
    await client.until(new RegExp(`data: ${event}\n\n`));
  }
});

const LARGE = 32 * 1024 * 1024;

test('an upload is read no faster than the application takes it', async () => {
  const go = Promise.withResolvers<void>();
  await using proxied = await startProxied((req, res) => {
    if (req.method === 'GET') return void res.end('ok');
    req.pause();
    void go.promise.then(async () => res.end(`${(await buffer(req)).length}`));
  });
  using client = await openStream(proxied.port);
  client.write(request('POST /upload', `Content-Length: ${LARGE}`));
  let taken = false;
  client.socket.write(Buffer.alloc(LARGE), () => (taken = true));
  for (let i = 0; i < 50; i += 1) assert.equal((await ask(proxied.port, request('GET /'))).status, 200);
  assert.equal(taken, false);
  assert.equal(proxied.edge.buffered(), 0);
  go.resolve();
  await client.until(new RegExp(`\r\n\r\n${LARGE}`));
});

test('a download is read no faster than the client takes it', async () => {
  let taken = false;
  await using proxied = await startProxied((req, res) => {
    if (req.url === '/') return void res.end('ok');
    res.writeHead(200, ['Content-Length', `${LARGE}`]);
    res.write(Buffer.alloc(LARGE), () => (taken = true));
  });
  using client = await openStream(proxied.port);
  client.socket.pause();
  client.write(request('GET /download'));
  for (let i = 0; i < 50; i += 1) assert.equal((await ask(proxied.port, request('GET /'))).status, 200);
  assert.equal(taken, false);
  assert.equal(proxied.edge.buffered(), 0);
  let came = 0;
  client.socket.on('data', (chunk: Buffer) => (came += chunk.length));
  client.socket.resume();
  while (came < LARGE) await once(client.socket, 'data');
});

test('a client that takes nothing of a download is cut off after a while; one that waits for the application is not', async () => {
  const there = Promise.withResolvers<ServerResponse>();
  await using proxied = await startProxied(
    (req, res) => {
      res.writeHead(200, { 'Content-Type': 'text/event-stream' });
      if (req.url === '/events') {
        res.flushHeaders();
        there.resolve(res);
      } else res.write(Buffer.alloc(LARGE));
    },
    { edge: { receive: { stalledMs: 300 } } },
  );
  using waiting = await openStream(proxied.port);
  waiting.write(request('GET /events'));
  const events = await there.promise;
  using stalled = await openStream(proxied.port);
  stalled.socket.pause();
  stalled.write(request('GET /download'));
  const report = await proxied.edge.passed(1);
  assert.equal(report.outcome, 'gone');
  assert.ok(report.totalMs >= 300, `${report.totalMs}`);
  events.end('data: here\n\n');
  await waiting.until(/data: here\n\n/);
});

test('requests that come on one connection before their answers are answered in their order', async () => {
  const answers: ServerResponse[] = [];
  const both = Promise.withResolvers<void>();
  await using proxied = await startProxied((req, res) => {
    answers[Number(req.url!.slice(1))] = res;
    if (answers[1] && answers[2]) both.resolve();
  });
  using client = await openStream(proxied.port);
  client.write(request('GET /1') + request('GET /2', 'Connection: close'));
  await both.promise;
  answers[2]!.writeEarlyHints({ link: '</x>' });
  answers[2]!.end('two');
  answers[1]!.end('one');
  assert.match(await client.rest(), /one[^]*two/);
});

test('an answer that comes before the end of the request is passed on, and what is left is thrown away', async () => {
  await using proxied = await startProxied(
    (_req, res) => void res.writeHead(413, ['Content-Length', '0', 'Connection', 'close']).end(),
  );
  const client = await openConnection(proxied.port);
  client.write(request('POST /', 'Content-Length: 1000'));
  assert.equal((await client.answer()).status, 413);
  client.write('x'.repeat(1000));
  client.write(request('POST /', 'Content-Length: 0'));
  assert.equal((await client.answer()).status, 413);
  client.socket.destroy();
});

test('B76: an application that is down is 502 without its address, and the next request goes through', async () => {
  const application = await startRawApplication(({ socket }) => void socket.write(OK));
  await using edge = await proxyingEdge({ url: application.url });
  await application.down();
  const answer = await ask(edge.port, `${request('POST /', 'Content-Length: 2')}ok`);
  assert.deepEqual([answer.status, headerOf(answer, 'Hookonce-Outcome')], [502, 'unreachable']);
  assert.doesNotMatch(answer.body, /127\.0\.0\.1|ECONN/);
  const report = await edge.passed(1);
  assert.deepEqual([report.outcome, report.status], ['unreachable', 502]);
});

for (const [name, bytes, client] of [
  ['before its answer', '', /^HTTP\/1\.1 502 /],
  ['in the head of its answer', 'HTTP/1.1 200 OK\r\nContent-', /^HTTP\/1\.1 502 /],
  ['with something that is no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n', /^HTTP\/1\.1 502 /],
  [
    'with a switch that nobody asked for',
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    /^HTTP\/1\.1 502 /,
  ],
  ['with two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok', /^HTTP\/1\.1 502 /],
  [
    'in the middle of its body',
    'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf',
    /^HTTP\/1\.1 200 [^]*\r\n\r\nhalf$/,
  ],
  [
    'in a chunk',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n9\r\nha',
    /^HTTP\/1\.1 200 [^]*\r\n\r\n6\r\nhalfha\r\n$/,
  ],
] as const) {
  test(`an application that breaks off ${name} is told as that`, async () => {
    await using application = await startRawApplication(({ socket }) => void socket.end(bytes, 'latin1'));
    await using edge = await proxyingEdge({ url: application.url });
    using stream = await openStream(edge.port);
    stream.write(request('GET /', 'Connection: close'));
    assert.match(await stream.rest(), client);
    assert.equal(application.requests.length, 1);
    assert.equal((await edge.passed(1)).outcome, 'uncertain');
  });
}

test('a client that goes away takes its request with it', async () => {
  const gone = Promise.withResolvers<void>();
  const there = Promise.withResolvers<void>();
  await using proxied = await startProxied((req) => {
    there.resolve();
    req.socket.once('close', gone.resolve);
  });
  const client = await openConnection(proxied.port);
  client.write(request('GET /'));
  await there.promise;
  client.socket.resetAndDestroy();
  await gone.promise;
  const report = await proxied.edge.passed(1);
  assert.deepEqual([report.outcome, report.status], ['gone', undefined]);
  assert.equal(proxied.edge.inFlight(), 0);
});

test('above the limit of what is passed through the answer is 503 with Retry-After; deliveries are not concerned', async () => {
  await using proxied = await startProxied((_req, res) => res.flushHeaders(), { application: { maxProxied: 1 } });
  using first = await openStream(proxied.port);
  first.write(request('GET /'));
  await first.until(/\r\n\r\n/);
  const second = await ask(proxied.port, request('GET /'));
  assert.deepEqual([second.status, headerOf(second, 'Retry-After')], [503, '1']);
  assert.equal((await ask(proxied.port, request('POST /hook', 'Content-Length: 0'))).status, 200);
});

test('what is passed through is no delivery, wherever it goes', async () => {
  await using proxied = await startProxied((_req, res) => void res.end('ok'));
  for (const first of ['GET /a', 'POST /b', 'GET /hook?x=1', 'HEAD /all/x', 'OPTIONS /hook']) {
    using client = await openStream(proxied.port);
    client.write(request(first, 'Connection: close', ...(first.startsWith('POST') ? ['Content-Length: 0'] : [])));
    assert.match(await client.rest(), /^HTTP\/1\.1 200 /);
  }
  await proxied.edge.passed(5);
  assert.equal(proxied.edge.received.length, 0);
  assert.equal(proxied.edge.reports.length, 0);
  assert.ok(proxied.edge.proxied.every(({ outcome, client }) => outcome === 'proxied' && client === '127.0.0.1'));
});

test('B70: GET on a route goes to the application without a claim, with or without a body', async () => {
  await using proxied = await startProxied((_req, res) => void res.end('42'));
  const target = '/hook?hub.mode=subscribe&hub.challenge=42';
  assert.match((await ask(proxied.port, `${request(`GET ${target}`, 'Content-Length: 5')}hello`)).body, /42/);
  using client = await openStream(proxied.port);
  client.write(request(`GET ${target}`, 'Connection: close'));
  assert.match(await client.rest(), /^HTTP\/1\.1 200 [^]*42/);
  assert.equal(proxied.edge.received.length, 0);
});

test('a question on a route that the application could take for a delivery is 405', async () => {
  await using proxied = await startProxied(() => assert.fail('passed through'));
  for (const name of ['X-HTTP-Method-Override', 'x-method-override', 'X-HTTP-Method'])
    assert.equal((await ask(proxied.port, request('GET /hook', `${name}: POST`))).status, 405);
});

test('a request that the application could take for one on a route is 400', async () => {
  await using proxied = await startProxied((_req, res) => void res.end('ok'));
  for (const line of ['X-Original-URL: /hook', 'x-rewrite-url: /HOOK/?a', 'X-Original-URL: https://a.example/all/x'])
    assert.equal((await ask(proxied.port, request('POST /other', line, 'Content-Length: 0'))).status, 400, line);
  assert.equal(
    (await ask(proxied.port, request('POST /other', 'X-Original-URL: /x', 'Content-Length: 0'))).status,
    200,
  );
});

test('nobody speaks in the gateway’s name, or takes away by Connection what must stay', async () => {
  await using application = await startRawApplication(({ socket }) => void socket.write(OK));
  await using edge = await proxyingEdge({ url: application.url });
  await ask(
    edge.port,
    `${request(
      'POST /',
      'Connection: Content-Length, Host, X-Forwarded-For, X-Named',
      'Content-Length: 2',
      'X-Named: 1',
      'hookonce-Sender: stripe',
      'Keep-Alive: timeout=5',
      'Proxy-Authorization: x',
      'TE: trailers',
    )}ok`,
  );
  assert.deepEqual(application.requests[0]!.lines, [
    ...['POST / HTTP/1.1', 'Host: app.example', 'Content-Length: 2'],
    ...['X-Forwarded-For: 127.0.0.1', 'X-Forwarded-Proto: http'],
  ]);
  assert.equal(application.requests[0]!.body.toString(), 'ok');
});

test('bytes beyond ASCII in Content-Disposition arrive as they were', async () => {
  const name = Buffer.from('attachment; filename="日本.txt"').toString('latin1');
  await using application = await startRawApplication(
    ({ socket }) =>
      void socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Disposition: ${name}\r\n\r\nok`, 'latin1'),
  );
  await using edge = await proxyingEdge({ url: application.url });
  const answer = await ask(edge.port, `${request('POST /', 'Content-Length: 2', `Content-Disposition: ${name}`)}ok`);
  assert.equal(headerOf(answer, 'Content-Disposition'), name);
  assert.equal(answer.body, 'ok');
  assert.ok(application.requests[0]!.lines.includes(`Content-Disposition: ${name}`));
});
