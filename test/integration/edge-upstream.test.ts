/** The application's side of the gateway, byte by byte, on real sockets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import type { AppReply } from '../../src/core/delivery.ts';
import { createMemory } from '../../src/core/memory.ts';
import type { AppRequest, AppResult, Clock, Upstream } from '../../src/core/ports.ts';
import { createUpstream, type UpstreamOptions } from '../../src/upstream.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startRawApplication, type RawApplication, type RawRequest } from '../support/raw-application.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

interface Rig extends AsyncDisposable {
  readonly application: RawApplication;
  readonly upstream: Upstream;
  send(change?: Partial<AppRequest>): Promise<AppResult>;
}

async function start(
  serve: (request: RawRequest) => void,
  options: Partial<UpstreamOptions> = {},
  clock: Clock = systemClock,
): Promise<Rig> {
  const application = await startRawApplication(serve);
  const upstream = createUpstream({ ...defaults, url: application.url, ...options }, clock);
  return {
    application,
    upstream,
    send: async (change = {}) => await upstream.send({ ...post, ...change }, () => true),
    async [Symbol.asyncDispose]() {
      await upstream[Symbol.asyncDispose]();
      await application.down();
    },
  };
}

const defaults = {
  host: 'preserve',
  keepAliveMs: 1_000,
  timeoutMs: 20_000,
  connectTimeoutMs: 5_000,
  maxInFlight: 4,
  maxWaiting: 4,
  maxWaitMs: 20_000,
  maxReply: 1024 * 1024,
} as const;
/** One connection, so that the second request must use it again. */
const ONE = { maxInFlight: 1 };
const post: AppRequest = { method: 'POST', target: '/hook', headers: ['Host', 'a.example'], body: Buffer.from('{}') };

/** Answers every request with these bytes. */
const says =
  (bytes: string) =>
  ({ socket }: RawRequest): void =>
    void socket.write(bytes, 'latin1');

function answered(result: AppResult): AppReply {
  assert.equal(result.kind, 'answered', JSON.stringify(result));
  return result.reply;
}

async function assertReset(result: AppResult): Promise<void> {
  assert.equal(result.kind, 'unknown', JSON.stringify(result));
  if (result.kind !== 'unknown') return;
  assert.equal(result.how, 'reset');
  assert.equal(await result.late, undefined);
}

test('target and header lines keep their bytes, case, order and repeats; Host is the sender’s', async () => {
  await using rig = await start(says(OK));
  await rig.send({
    target: '/a%2Fb/%2e%2e/..//x;y?q=%zz&q=a+b',
    headers: [
      'x-lower',
      '1',
      'Host',
      'hooks.example:8443',
      'X-Twice',
      'b',
      'x-TWICE',
      'a',
      'X-Latin',
      'caf\u00e9',
      'X-Empty',
      '',
    ],
  });
  const { lines, body } = rig.application.requests[0]!;
  assert.equal(lines[0], 'POST /a%2Fb/%2e%2e/..//x;y?q=%zz&q=a+b HTTP/1.1');
  assert.deepEqual(
    lines.slice(1).filter((line) => line.startsWith('x') || line.startsWith('X')),
    ['x-lower: 1', 'X-Twice: b', 'x-TWICE: a', 'X-Latin: caf\u00e9', 'X-Empty: '],
  );
  assert.deepEqual(
    lines.filter((line) => /^host:/i.test(line)),
    ['host: hooks.example:8443'],
  );
  assert.equal(body.toString(), '{}');
});

test('B65: hop-by-hop lines and Expect stay here, in both directions', async () => {
  const hop = [
    'Connection',
    'keep-alive, X-Named',
    'Keep-Alive',
    'timeout=5',
    'TE',
    'trailers',
    'Upgrade',
    'h2c',
    'Trailer',
    'X',
    'Proxy-Authorization',
    'x',
    'Proxy-Connection',
    'close',
    'X-Named',
    '1',
    'Transfer-Encoding',
    'chunked',
    'Expect',
    '100-continue',
  ];
  const answer =
    'HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\nX-End: 1\r\nContent-Length: 2\r\n\r\nok';
  await using rig = await start(says(answer));
  const reply = answered(await rig.send({ headers: [...post.headers, ...hop, 'X-Kept', '1'] }));
  const names = rig.application.requests[0]!.lines.slice(1).map((line) => line.split(':')[0]!.toLowerCase());
  assert.deepEqual(names, ['host', 'connection', 'x-kept', 'content-length']);
  assert.deepEqual(reply.headers, ['X-End', '1', 'Content-Length', '2']);
});

test('a sender cannot strip Host or the gateway’s own lines by naming them in Connection', async () => {
  await using rig = await start(says(OK));
  await rig.send({ headers: ['Host', 'a.example', 'Connection', 'Host, Hookonce-Attempt', 'Hookonce-Attempt', '2'] });
  const { lines } = rig.application.requests[0]!;
  assert.ok(lines.includes('host: a.example'));
  assert.ok(lines.includes('Hookonce-Attempt: 2'));
});

for (const [method, body, expected] of [
  ['POST', '', '0'],
  ['POST', 'abc', '3'],
  ['DELETE', 'abc', '3'],
  ['DELETE', '', undefined],
  ['PATCH', 'abc', '3'],
] as const) {
  test(`${method} with ${body.length} bytes states their length once, whatever the sender stated`, async () => {
    await using rig = await start(says(OK));
    answered(await rig.send({ method, body: Buffer.from(body), headers: ['Host', 'a', 'Content-Length', '00003'] }));
    const stated = rig.application.requests[0]!.lines.filter((line) => /^content-length/i.test(line));
    assert.deepEqual(
      stated.map((line) => line.split(': ')[1]),
      expected === undefined ? [] : [expected],
    );
    assert.equal(rig.application.requests[0]!.body.toString(), body);
  });
}

test('B74: repeated lines of a reply stay apart and in order', async () => {
  await using rig = await start(
    says('HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nx-d: 1\r\nSet-Cookie: b=2\r\nX-D: 2\r\nContent-Length: 0\r\n\r\n'),
  );
  const { headers } = answered(await rig.send());
  assert.deepEqual(headers, ['Set-Cookie', 'a=1', 'x-d', '1', 'Set-Cookie', 'b=2', 'X-D', '2', 'Content-Length', '0']);
});

test('B80: replies without content, then a normal one', async () => {
  const replies = [
    'HTTP/1.1 204 No Content\r\n\r\n',
    'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello',
    'HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n',
    'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n',
    OK,
  ];
  await using rig = await start(({ socket }) => void socket.write(replies.shift()!));
  for (const [status, body] of [
    [204, ''],
    [204, ''],
    [304, ''],
    [200, ''],
    [200, 'ok'],
  ] as const) {
    const reply = answered(await rig.send());
    assert.equal(reply.status, status);
    assert.equal(reply.body!.toString(), body);
  }
});

test('informational answers are passed over', async () => {
  await using rig = await start(
    says('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n' + OK),
  );
  const reply = answered(await rig.send());
  assert.equal(reply.status, 200);
  assert.deepEqual(reply.headers, ['Content-Length', '2']);
});

test('B81: a compressed reply stays as it is', async () => {
  const gzip = '\x1f\x8b\x08\x00\x00\x00\x00\x00';
  await using rig = await start(says(`HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 8\r\n\r\n${gzip}`));
  const { headers, body } = answered(await rig.send());
  assert.deepEqual(headers, ['Content-Encoding', 'gzip', 'Content-Length', '8']);
  assert.equal(body!.toString('latin1'), gzip);
});

test('a redirect is an answer like any other', async () => {
  await using rig = await start(
    says('HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n'),
  );
  assert.equal(answered(await rig.send()).status, 307);
  assert.equal(rig.application.requests.length, 1);
});

test('a phrase beside the status is kept where it says more than usual, and can be written again', async () => {
  const phrases = ['Fancy That', 'OK', '', 'caf\u00e9'];
  await using rig = await start(({ socket }) => {
    socket.write(`HTTP/1.1 200 ${phrases.shift()}\r\nContent-Length: 0\r\n\r\n`, 'latin1');
  });
  for (const reason of ['Fancy That', undefined, undefined, undefined])
    assert.equal(answered(await rig.send()).reason, reason);
});

test('chunked and close-delimited replies are read whole', async () => {
  const replies = [
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\nX-Trailer: 1\r\n\r\n',
    'HTTP/1.1 200 OK\r\n\r\nabc',
  ];
  await using rig = await start(({ socket }) => {
    socket.write(replies.shift()!);
    if (replies.length === 0) socket.end();
  });
  for (let i = 0; i < 2; i++) {
    const { headers, body } = answered(await rig.send());
    assert.equal(body!.toString(), 'abc');
    assert.deepEqual(headers, []);
  }
});

test('of a reply that is larger than the limit only status and headers are kept, and the connection goes on', async () => {
  const large = `HTTP/1.1 201 Created\r\nContent-Length: 3000\r\n\r\n${'x'.repeat(3000)}`;
  const replies = [large, OK];
  await using rig = await start(({ socket }) => void socket.write(replies.shift()!), {
    maxReply: 2999,
    maxInFlight: 1,
  });
  const reply = answered(await rig.send());
  assert.equal(reply.status, 201);
  assert.equal(reply.body, undefined);
  assert.equal(answered(await rig.send()).body!.toString(), 'ok');
  assert.equal(rig.application.requests[1]!.connection, 1);
});

for (const [name, bytes] of Object.entries({
  'cut in its body': 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf',
  'cut in a chunk': 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf',
  'cut in its headers': 'HTTP/1.1 200 OK\r\nContent-',
  'with two lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok',
  'with length and chunks':
    'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'with 20 kB of headers': `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\nContent-Length: 2\r\n\r\nok`,
  'that is not HTTP': 'SSH-2.0-OpenSSH_9.2\r\n',
  'that is empty': '',
  'that switches protocols': 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n',
})) {
  test(`a reply ${name} is unknown, sent once, and the next request goes through`, async () => {
    let first = true;
    await using rig = await start(({ socket }) => {
      if (!first) return void socket.write(OK);
      first = false;
      socket.end(bytes, 'latin1');
    });
    await assertReset(await rig.send());
    assert.equal(rig.application.requests.length, 1);
    assert.equal(answered(await rig.send()).status, 200);
  });
}

test('B62: a reused connection that is reset after the request was read: one send, unknown', async () => {
  await using rig = await start(({ socket }) => {
    if (rig.application.requests.length === 2) socket.resetAndDestroy();
    else socket.write(OK);
  }, ONE);
  answered(await rig.send());
  await assertReset(await rig.send());
  assert.equal(rig.application.requests.length, 2);
  assert.deepEqual(
    rig.application.requests.map(({ connection }) => connection),
    [1, 1],
  );
});

test('B63: a kept connection that the application has closed is not used, and no delivery is lost', async () => {
  await using rig = await start(says(OK), ONE);
  for (let i = 0; i < 20; i++) {
    answered(await rig.send());
    const [socket] = rig.application.open;
    const gone = once(socket!, 'close');
    socket!.destroy();
    await gone;
  }
  assert.equal(rig.application.requests.length, 20);
});

test('a claim that ran out on a kept connection costs neither a byte nor the connection', async () => {
  await using rig = await start(says(OK), ONE);
  answered(await rig.send());
  const expired = await rig.upstream.send(post, () => false);
  assert.equal(expired.kind === 'never-sent' && expired.why, 'expired');
  answered(await rig.send());
  assert.deepEqual(
    rig.application.requests.map(({ connection }) => connection),
    [1, 1],
  );
});

test('mayStart is asked when a connection is there and before the application has a byte', async () => {
  await using rig = await start(says(OK));
  let seen: string | undefined;
  const result = await rig.upstream.send(post, () => {
    seen = `${rig.application.requests.length} requests`;
    return true;
  });
  answered(result);
  assert.equal(seen, '0 requests');
  await rig.application.down();
  await rig.upstream.send(post, () => assert.fail('asked without a connection'));
});

test('a connection that does not come about in time: nothing was sent, then or later', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket.on('error', () => undefined)));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const clock = new ManualClock();
  const { port } = silent.address() as AddressInfo;
  const upstream = createUpstream({ ...defaults, url: `https://127.0.0.1:${port}`, connectTimeoutMs: 1_000 }, clock);
  const sent = upstream.send(post, () => assert.fail('asked without a connection'));
  await once(silent, 'connection');
  await clock.advance(1_000);
  const result = await sent;
  assert.equal(result.kind === 'never-sent' && result.why, 'connect_timeout');
  assert.equal(clock.pending, 0);
  await upstream[Symbol.asyncDispose]();
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test('an application that cannot be found: nothing was sent', async () => {
  const upstream = createUpstream({ ...defaults, url: 'http://nobody.invalid:80' }, systemClock);
  const result = await upstream.send(post, () => true);
  assert.equal(result.kind === 'never-sent' && result.why, 'unreachable');
  await upstream[Symbol.asyncDispose]();
});

test('slots: first come, first served; then the queue is full, then the wait is over', async () => {
  const clock = new ManualClock();
  const limits = { maxInFlight: 1, maxWaiting: 2, maxWaitMs: 500 };
  await using rig = await start(() => undefined, limits, clock);
  const order: string[] = [];
  const named = async (name: string): Promise<AppResult> => {
    const result = await rig.send({ target: `/${name}` });
    order.push(name);
    return result;
  };
  const sent = ['first', 'second', 'third', 'fourth'].map(named);
  const fourth = await sent[3]!;
  assert.equal(fourth.kind === 'never-sent' && fourth.why, 'waiting');

  (await rig.application.arrived(0)).socket.write(OK);
  answered(await sent[0]!);
  const second = await rig.application.arrived(1);
  assert.equal(second.lines[0], 'POST /second HTTP/1.1');
  await clock.advance(500);
  const third = await sent[2]!;
  assert.equal(third.kind === 'never-sent' && third.why, 'in_flight');
  second.socket.write(OK);
  answered(await sent[1]!);
  assert.deepEqual(order, ['fourth', 'first', 'third', 'second']);
  assert.equal(rig.application.requests.length, 2);
  assert.equal(clock.pending, 0);
});

test('a late exchange keeps its slot until it ends or is cut', async () => {
  const clock = new ManualClock();
  await using rig = await start(() => undefined, { maxInFlight: 1, maxWaitMs: 60_000, timeoutMs: 5_000 }, clock);
  const first = rig.send();
  await rig.application.arrived(0);
  await clock.advance(5_000);
  const uncertain = await first;
  assert.equal(uncertain.kind, 'unknown');

  const second = rig.send();
  await clock.advance(50_000);
  assert.equal(rig.application.requests.length, 1);
  if (uncertain.kind === 'unknown') uncertain.cut();
  (await rig.application.arrived(1)).socket.write(OK);
  answered(await second);
});

test('B78: headers came, the body stalls: unknown by timeout, and a late end still counts', async () => {
  const clock = new ManualClock();
  await using rig = await start(
    ({ socket }) => void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab'),
    { timeoutMs: 500 },
    clock,
  );
  const sent = rig.send();
  const { socket } = await rig.application.arrived(0);
  await clock.advance(500);
  const result = await sent;
  assert.equal(result.kind === 'unknown' && result.how, 'timeout');
  socket.write('cd');
  if (result.kind === 'unknown') assert.equal((await result.late)!.body!.toString(), 'abcd');
});

test('what waits for a slot is let go when the gateway closes', async () => {
  const rig = await start(() => undefined, { maxInFlight: 1 });
  const first = rig.send();
  await rig.application.arrived(0);
  const second = rig.send();
  await rig[Symbol.asyncDispose]();
  await assertReset(await first);
  const result = await second;
  assert.equal(result.kind === 'never-sent' && result.why, 'in_flight');
});

test('the head of the answer may have a time limit of its own, told apart from the one for the whole', async () => {
  const clock = new ManualClock();
  const replies = ['', 'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab', OK];
  await using rig = await start(
    ({ socket }) => void socket.write(replies.shift()!),
    { timeoutMs: 500, headersTimeoutMs: 200 },
    clock,
  );
  const silent = rig.send();
  await rig.application.arrived(0);
  await clock.advance(200);
  const first = await silent;
  assert.equal(first.kind === 'unknown' && first.how, 'headers_timeout');

  const stalling = rig.send();
  await rig.application.arrived(1);
  // A third exchange over the loopback: what was sent before it has come.
  if (first.kind === 'unknown') first.cut();
  await clock.advance(199);
  answered(await rig.send());
  await clock.advance(301);
  const second = await stalling;
  assert.equal(second.kind === 'unknown' && second.how, 'timeout');
});

test('a reply is taken from the memory of its delivery; without room its body is dropped, its status kept', async () => {
  const large = `HTTP/1.1 201 Created\r\nContent-Length: 300\r\n\r\n${'x'.repeat(300)}`;
  await using rig = await start(says(large));
  let held = 0;
  const memory = createMemory(400, (bytes) => (held = bytes));
  const [roomy, tight] = [memory.open(), memory.open()];
  assert.equal(answered(await rig.send({ share: roomy })).body!.length, 300);
  assert.equal(held, 300);
  const reply = answered(await rig.send({ share: tight }));
  assert.deepEqual([reply.status, reply.body], [201, undefined]);
  roomy.release();
  tight.release();
  assert.equal(held, 0);
});

test('a late exchange keeps the memory of its delivery until it ends', async () => {
  const clock = new ManualClock();
  await using rig = await start(() => undefined, { timeoutMs: 500 }, clock);
  let held = 0;
  const share = createMemory(400, (bytes) => (held = bytes)).open();
  share.take(200);
  const sent = rig.send({ share });
  await rig.application.arrived(0);
  await clock.advance(500);
  const result = await sent;
  share.release();
  assert.equal(held, 200);
  if (result.kind === 'unknown') {
    result.cut();
    await result.late;
  }
  assert.equal(held, 0);
});
