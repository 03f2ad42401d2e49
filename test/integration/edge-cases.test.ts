/** Public reports about proxies, replayed against a gateway as a process. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { systemClock } from '../../src/clock.ts';
import { allHeaders, header } from '../../src/core/delivery.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import * as signers from '../../src/demo/signers.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held, reset, scriptedApplication, type ScriptedApplication } from '../support/application.ts';
import { post } from '../support/cluster.ts';
import { secrets, shortLock } from '../support/config.ts';
import { custom, github, outcome } from '../support/deliveries.ts';
import { sum } from '../support/metrics.ts';
import { headerLines, postHead, rawExchange } from '../support/raw-client.ts';
import { ask, headerOf, openConnection } from '../support/raw-connection.ts';
import { startSolo } from '../support/solo.ts';

let application: ScriptedApplication;
let gateway: Gateway;
before(async () => {
  application = await scriptedApplication();
  gateway = await startSolo(application.url, { claims: shortLock, upstream: { timeout: '500ms' } });
});
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await application[Symbol.asyncDispose]();
});

const port = (): number => Number(new URL(gateway.url).port);

/** A signed delivery at the level of bytes; `lines` are whole header lines. */
async function raw(id: string, target: string, lines: readonly string[] = [], version = '1.1', body = '{"a":1}') {
  const signed = headerLines(github(id, body).headers);
  const head = [
    `POST ${target} HTTP/${version}`,
    ...signed,
    ...lines,
    `Content-Length: ${body.length}`,
    'Connection: close',
    '',
    body,
  ];
  return await rawExchange(gateway.url, [head.join('\r\n')]);
}

test('B62: one send per delivery: a connection that breaks is 502, and the sender’s next try is attempt 2', async () => {
  application.script('D31', reset);
  assert.equal((await post(gateway, '/github', github('D30'))).status, 200);
  const broken = await post(gateway, '/github', github('D31'));
  assert.deepEqual([broken.status, outcome(broken)], [502, 'uncertain']);
  assert.equal(application.of('D31').length, 1);
  await until(systemClock, 'the lock to have run out', async () =>
    (await post(gateway, '/github', github('D31'))).status === 200 ? true : undefined,
  );
  assert.deepEqual(
    application.of('D31').map(({ attempt }) => attempt),
    [1, 2],
  );
});

/** Idle connections end after 50 ms, with or without having said so. */
async function impatientApplications(): Promise<{ urls: string[]; counts: () => number[]; close: () => void }> {
  let [announced, silent] = [0, 0];
  const one = createServer((_req, res) => {
    announced += 1;
    res.end('ok');
  });
  one.keepAliveTimeout = 50;
  one.keepAliveTimeoutBuffer = 0;
  const sockets = new Set<Socket>();
  const other = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).setTimeout(50, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => {
      if (!chunk.includes('{"a":1}')) return;
      silent += 1;
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  });
  for (const server of [one, other]) await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    urls: [one, other].map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    counts: () => [announced, silent],
    close: () => {
      one.close();
      one.closeAllConnections();
      other.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

test('B63: an application that soon closes idle connections loses no delivery', async () => {
  const { urls, counts, close } = await impatientApplications();
  const gateways = await Promise.all([startSolo(urls[0]!), startSolo(urls[1]!, { upstream: { keepAlive: '20ms' } })]);
  const deliveries = process.env['HOOKONCE_TEST_FULL'] === '1' ? 300 : 60;
  await Promise.all(
    gateways.map(async (each) => {
      for (let i = 0; i < deliveries; i += 1) {
        assert.equal((await post(each, '/github', github(`B63-${i}`))).status, 200);
        // The spacing is the case: connections have been idle for as long as they live.
        await systemClock.sleep(45 + 10 * systemClock.random());
      }
    }),
  );
  assert.deepEqual(counts(), [deliveries, deliveries]);
  for (const each of gateways) await each[Symbol.asyncDispose]();
  close();
});

test('B64: Expect: 100-continue is answered here and stays here; another expectation is 417', async () => {
  const connection = await openConnection(port());
  const { headers, body } = github('B64');
  const head = [
    'POST /github HTTP/1.1',
    'Host: g',
    ...headerLines(headers),
    'Expect: 100-continue',
    `Content-Length: ${body.length}`,
    '',
    '',
  ];
  connection.write(head.join('\r\n'));
  assert.equal((await connection.answer()).status, 100);
  connection.write(body);
  assert.equal((await connection.answer()).status, 200);
  connection.socket.destroy();
  assert.equal(header(application.of('B64')[0]!.headers, 'expect'), undefined);
  assert.equal((await raw('B64-2', '/github', ['Host: g', 'Expect: something-else'])).status, 417);
});

test('B65: hop-by-hop lines go no further, either way', async () => {
  application.script(
    'B65',
    answer(200, {
      headers: ['Connection', 'close', 'Keep-Alive', 'timeout=9', 'Proxy-Authenticate', 'x', 'X-End', '1'],
    }),
  );
  const hop = ['Keep-Alive: timeout=5', 'TE: trailers', 'Upgrade: h2c', 'Proxy-Authorization: x', 'Trailer: X'];
  const reply = await raw('B65', '/github', ['Host: g', ...hop]);
  assert.equal(reply.status, 200);
  const seen = application
    .of('B65')[0]!
    .headers.filter((_, i) => i % 2 === 0)
    .map((name) => name.toLowerCase());
  for (const line of hop) assert.ok(!seen.includes(line.split(':')[0]!.toLowerCase()), line);
  assert.deepEqual(allHeaders(reply.headers, 'proxy-authenticate'), []);
  assert.deepEqual(allHeaders(reply.headers, 'x-end'), ['1']);
  assert.ok(!allHeaders(reply.headers, 'keep-alive').includes('timeout=9'));
});

test('B67: a message whose end can be read in two ways is 400 and the end of its connection', async () => {
  const signed = headerLines(github('B67', '{}').headers);
  for (const lines of [
    ['Content-Length: 4', 'Transfer-Encoding: chunked'],
    ['Content-Length: 2', 'Content-Length: 3'],
    ['Transfer-Encoding: xchunked'],
    ['Transfer-Encoding: gzip, chunked'],
    ['Content-Length: +1'],
  ]) {
    const connection = await openConnection(port());
    connection.write(
      ['POST /github HTTP/1.1', 'Host: g', ...signed, ...lines, '', '2\r\n{}\r\n0\r\n\r\n'].join('\r\n'),
    );
    assert.equal((await connection.answer()).status, 400, lines.join());
    await connection.closed;
  }
  assert.equal(application.of('B67').length, 0);
  assert.equal((await post(gateway, '/github', github('B67'))).status, 200);
});

test('B69: a content type and the bytes under it arrive as they were', async () => {
  for (const [id, type, body] of [
    ['B69-1', 'text/plain', Buffer.from('this is plain text')],
    ['B69-2', 'application/xml', Buffer.from('<?xml version="1.0" encoding="ISO-8859-1"?><a>\xe9</a>', 'latin1')],
  ] as const) {
    assert.equal((await post(gateway, '/github', signers.github(secrets.github, id, body, type))).status, 200);
    const [visit] = application.of(id);
    assert.deepEqual(allHeaders(visit!.headers, 'content-type'), [type]);
    assert.deepEqual(visit!.body, body);
  }
});

test('B70: GET on a route is the application’s to answer, without a claim and at once', async () => {
  application.otherwise((visit) => ({ status: 200, body: visit.method === 'GET' ? '42' : 'ok' }));
  const target = '/github?hub.mode=subscribe&hub.challenge=42';
  const claims = async (): Promise<number> => sum([await gateway.metrics()], 'hookonce_claim_duration_seconds_count');
  const before = await claims();
  for (const request of [
    `GET ${target} HTTP/1.1\r\nHost: g\r\nContent-Length: 5\r\n\r\nhello`,
    `GET ${target} HTTP/1.1\r\nHost: g\r\n\r\n`,
  ]) {
    const reply = await ask(port(), request);
    assert.deepEqual([reply.status, reply.body], [200, '42']);
  }
  application.otherwise(answer(200));
  assert.equal(await claims(), before);
});

test('B71: whatever the target looks like, the application is the one that is configured', async () => {
  let strangers = 0;
  const stranger = createTcpServer((socket) => {
    strangers += 1;
    socket.destroy();
  }).listen(0, '127.0.0.1');
  await once(stranger, 'listening');
  const evil = `127.0.0.1:${(stranger.address() as AddressInfo).port}`;
  for (const target of [
    `//${evil}/x`,
    '///x',
    `http://${evil}/x`,
    `/\\\\${evil}`,
    '/a/../../b',
    '*',
    `http://${evil}/github`,
    `//${evil}/../github`,
  ]) {
    const { status } = await raw('B71', target, ['Host: g']);
    assert.ok([200, 400, 404].includes(status), `${target}: ${status}`);
  }
  assert.equal(strangers, 0);
  stranger.close();
});

test('B73: escapes in a target arrive as they were, whole or malformed', async () => {
  for (const [n, target] of [
    '/custom/a%2Fb/%2e%2e/c',
    '/custom/%E0%A4%A',
    '/custom/x%00y',
    '/custom/a%20b+c',
    '/elsewhere/a%2Fb/%2e%2e/%zz',
  ].entries()) {
    const body = `{"id":"B73-${n}"}`;
    const { headers } = custom(body);
    const reply = await rawExchange(gateway.url, [
      [
        `POST ${target} HTTP/1.1`,
        'Host: g',
        ...headerLines(headers),
        `Content-Length: ${body.length}`,
        'Connection: close',
        '',
        body,
      ].join('\r\n'),
    ]);
    assert.equal(reply.status, 200, target);
    assert.equal(application.of(`B73-${n}`)[0]!.target, target);
  }
});

test('B74: repeated lines of an answer arrive apart and in their order', async () => {
  const lines = ['Set-Cookie', 'a=1', 'X-D', '1', 'Link', '</a>', 'Set-Cookie', 'b=2', 'X-D', '2', 'Link', '</b>'];
  application.script('B74', answer(200, { headers: lines }));
  const reply = await post(gateway, '/github', github('B74'));
  for (const [name, values] of [
    ['set-cookie', ['a=1', 'b=2']],
    ['x-d', ['1', '2']],
    ['link', ['</a>', '</b>']],
  ] as const)
    assert.deepEqual(allHeaders(reply.headers, name), values);
});

test('B76: while the application is down every delivery is 502; then all of them arrive, once', async () => {
  await using fresh = await scriptedApplication();
  await using apart = await startSolo(fresh.url);
  await fresh.down();
  const ids = Array.from({ length: 300 }, (_, i) => `B76-${i}`);
  const { pid } = apart.child;
  const statuses = async (): Promise<Set<number>> => {
    const queue = ids.values();
    const seen = new Set<number>();
    const lane = async (): Promise<void> => {
      for (const id of queue) {
        const reply = await post(apart, '/github', github(id));
        assert.doesNotMatch(reply.body.toString(), /127\.0\.0\.1|ECONN/);
        seen.add(reply.status);
      }
    };
    await Promise.all(Array.from({ length: 20 }, lane));
    return seen;
  };
  assert.deepEqual([...(await statuses())], [502]);
  await fresh.up();
  assert.deepEqual([...(await statuses())], [200]);
  assert.ok(apart.child.running());
  assert.equal(apart.child.pid, pid);
  assert.deepEqual([...new Set(ids.map((id) => fresh.of(id).length))], [1]);
  assert.deepEqual([...new Set(ids.map((id) => fresh.of(id)[0]!.attempt))], [1]);
});

test('B78: an application that does not answer in time is 504, and its event is not done', async () => {
  const silent = held();
  application.script('B78', silent.step);
  const before = systemClock.now();
  const reply = await post(gateway, '/github', github('B78'));
  assert.deepEqual([reply.status, outcome(reply)], [504, 'uncertain']);
  assert.ok(systemClock.now() - before >= 500);
  assert.equal(
    sum([await gateway.metrics()], 'hookonce_upstream_failures_total', { route: 'github', reason: 'timeout' }),
    1,
  );

  // The head comes, the body does not.
  application.script('B78-2', (_visit, socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf');
    return undefined;
  });
  assert.equal((await post(gateway, '/github', github('B78-2'))).status, 504);
  for (const id of ['B78', 'B78-2']) {
    await until(systemClock, 'the lock to have run out', async () =>
      (await post(gateway, '/github', github(id))).status === 200 ? true : undefined,
    );
    assert.deepEqual(
      application.of(id).map(({ attempt }) => attempt),
      [1, 2],
    );
  }
  silent.finish();
});

test('B80: answers without content, and a normal one after each', async () => {
  for (const [status, more] of [
    [204, {}],
    [204, { headers: ['Content-Length', '5'] }],
    [304, { headers: ['Content-Length', '10'] }],
    [200, { body: '' }],
  ] as const) {
    const id = `B80-${status}-${JSON.stringify(more)}`;
    application.script(id, answer(status, more));
    const reply = await post(gateway, '/github', github(id));
    assert.equal(reply.status, status);
    assert.equal(reply.body.length === 0 || status === 200, true);
    const normal = await post(gateway, '/github', github(`${id}-normal`));
    assert.deepEqual([normal.status, normal.body.toString()], [200, 'answered 200\n']);
  }
  // 304 is no success: the sender may come again.
  const again = await post(
    gateway,
    '/github',
    github(`B80-304-${JSON.stringify({ headers: ['Content-Length', '10'] })}`),
  );
  assert.equal(outcome(again), undefined);
});

test('B81: a compressed answer arrives as it was, whether it was asked for or not', async () => {
  const body = gzipSync('a'.repeat(250));
  for (const accept of [[], ['Accept-Encoding', 'gzip']]) {
    const id = `B81-${accept.length}`;
    application.script(id, answer(200, { headers: ['Content-Encoding', 'gzip'], body }));
    const { headers, body: sent } = github(id);
    const reply = await post(gateway, '/github', { headers: [...headers, ...accept], body: sent });
    assert.deepEqual(reply.body, body);
    assert.deepEqual(allHeaders(reply.headers, 'content-encoding'), ['gzip']);
    assert.deepEqual(allHeaders(reply.headers, 'content-length'), [String(body.length)]);
  }
});

test('B83: a delivery of HTTP/1.0 without Host', async () => {
  application.script('B83', (_visit, socket) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n');
    return undefined;
  });
  const reply = await raw('B83', '/github', [], '1.0');
  assert.deepEqual([reply.status, reply.body.toString()], [200, 'ok']);
  assert.equal(header(reply.headers, 'transfer-encoding'), undefined);
  assert.equal(header(reply.headers, 'connection'), 'close');
  assert.equal(header(application.of('B83')[0]!.headers, 'host'), new URL(application.url).host);
});

test('B84: the peer is appended to what a sender says about its address, and is what the log shows', async () => {
  const { headers, body } = github('B84');
  await post(gateway, '/github', { headers: [...headers, 'X-Forwarded-For', '1.2.3.4'], body });
  const { headers: seen, key } = application.of('B84')[0]!;
  assert.deepEqual(allHeaders(seen, 'x-forwarded-for'), ['1.2.3.4, 127.0.0.1']);
  const line = await gateway.child.line(new RegExp(`"key":"${key.slice(0, 8)}`));
  assert.equal((JSON.parse(line) as { client: string }).client, '127.0.0.1');
});

test('B85: Host goes on with its port', async () => {
  await raw('B85', '/github', ['Host: hooks.example:8443']);
  const { headers } = application.of('B85')[0]!;
  assert.deepEqual(allHeaders(headers, 'host'), ['hooks.example:8443']);
  assert.deepEqual(allHeaders(headers, 'x-forwarded-proto'), ['http']);
});

test('B86: an upgrade on a route is 501, reset or not, and no delivery', async () => {
  const visits = application.visits.length;
  const socket =
    'GET /github HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n';
  const websocket = await openConnection(port());
  websocket.write(socket);
  const answered = await websocket.answer();
  assert.deepEqual([answered.status, headerOf(answered, 'Connection')], [501, 'close']);
  await websocket.closed;
  const resetting = await openConnection(port());
  resetting.write(socket);
  resetting.socket.resetAndDestroy();
  const url = `${gateway.url}/github`;
  const h2c = await rawExchange(url, [
    postHead(url, ['Upgrade: h2c', 'Content-Length: 0']).replace('Connection: close', 'Connection: Upgrade'),
  ]);
  assert.equal(h2c.status, 501);
  assert.equal(application.visits.length, visits);
  assert.ok(gateway.child.running());
});

test('B30: a compressed body: signed as it comes or as it was before, forwarded as it came', async () => {
  const routes = ['wire', 'decoded'].map((over) => ({
    ...{ name: over, path: `/${over}`, secrets: [{ file: './custom.secret' }], identity: { parts: [{ json: '/id' }] } },
    verify: { scheme: 'hmac-sha256', header: 'x-signature', prefix: 'sha256=', over },
  }));
  await using apart = await startSolo(application.url, { routes });
  for (const over of ['wire', 'decoded']) {
    const content = Buffer.from(`{"id":"B30-${over}"}`);
    const wire = gzipSync(content);
    const signature = `sha256=${signers.hmacHex(secrets.custom, over === 'wire' ? wire : content)}`;
    const sent = { headers: ['Content-Encoding', 'gzip', 'X-Signature', signature], body: wire };
    assert.equal((await post(apart, `/${over}`, sent)).status, 200);
    assert.equal(outcome(await post(apart, `/${over}`, sent)), 'duplicate');
    const visit = application.visits.find(({ target }) => target === `/${over}`)!;
    assert.deepEqual(visit.body, wire);
    assert.deepEqual(allHeaders(visit.headers, 'content-encoding'), ['gzip']);
  }
  const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024));
  assert.equal((await post(apart, '/decoded', { headers: ['Content-Encoding', 'gzip'], body: bomb })).status, 413);
  assert.equal((await post(apart, '/decoded', { headers: ['Content-Encoding', 'zstd'], body: bomb })).status, 415);
});
