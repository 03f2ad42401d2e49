import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { allHeaders } from '../../src/core/delivery.ts';
import * as signers from '../../src/demo/signers.ts';
import { startCluster, type Cluster } from '../support/cluster.ts';
import { secrets } from '../support/config.ts';
import { custom, github, outcome } from '../support/deliveries.ts';
import { headerLines, postHead, rawExchange } from '../support/raw-client.ts';

let cluster: Cluster;
before(async () => void (cluster = await startCluster()));
after(async () => await cluster[Symbol.asyncDispose]());

const bom = Buffer.from([0xef, 0xbb, 0xbf]);

/** What arrived for an event is one request with exactly these bytes. */
function assertArrived(id: string, body: Buffer): void {
  const visits = cluster.application.of(id);
  assert.equal(visits.length, 1, `${id} is forwarded once`);
  assert.equal(visits[0]!.body.length, body.length, id);
  assert.equal(visits[0]!.sha256, createHash('sha256').update(body).digest('hex'), id);
}

const bodies: Record<string, { body: Buffer; type?: string; headers?: string[] }> = {
  'numbers, duplicate keys and escapes': {
    body: Buffer.from('{ "a":1.0,"a":2,  "e":"\\u00e9","big":12345678901234567890 }'),
  },
  'CRLF and a last newline': { body: Buffer.from('{\r\n  "a": 1\r\n}\n') },
  'a byte order mark': { body: Buffer.concat([bom, Buffer.from('{"a":1}')]) },
  'bytes that are no UTF-8': {
    body: Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0xc3, 0x28, 0x7d]),
    type: 'application/octet-stream',
  },
  gzip: { body: gzipSync('{"a":"compressed"}'), headers: ['Content-Encoding', 'gzip'] },
  'a form': { body: Buffer.from('payload=%7B%22a%22%3A1%7D&b=x+y&b=%zz'), type: 'application/x-www-form-urlencoded' },
  nothing: { body: Buffer.alloc(0) },
};

for (const [name, { body, type = 'application/json', headers = [] }] of Object.entries(bodies)) {
  test(`a body of ${name} arrives byte for byte`, async () => {
    const signed = signers.github(secrets.github, name, body, type);
    const reply = await cluster.post(0, '/github', { body, headers: [...signed.headers, ...headers] });
    assert.equal(reply.status, 200);
    assertArrived(name, body);
    const [visit] = cluster.application.of(name);
    assert.deepEqual(allHeaders(visit!.headers, 'content-type'), [type]);
    assert.deepEqual(allHeaders(visit!.headers, 'content-encoding'), headers.slice(1));
  });
}

test('target and header lines arrive as they were sent, and only documented headers are added', async () => {
  const { headers, body } = github('transparent');
  const sent = [
    ...headers,
    'x-CASE',
    'kept',
    'X-Twice',
    '1',
    'x-twice',
    '2',
    'X-Utf8',
    Buffer.from('é').toString('latin1'),
  ];
  const forged = ['Hookonce-Attempt', '7', 'hookonce-key', 'forged'];
  const target = '/github?a=%2f..%2F&b=x+y&&c=%zz';
  const reply = await cluster.post(0, target, { headers: [...sent, ...forged], body });
  assert.equal(reply.status, 200);
  const [visit] = cluster.application.of('transparent');
  assert.equal(visit!.target, target);
  const lines = headerLines(visit!.headers);
  const fromSender = new Set(headerLines(sent));
  assert.deepEqual(
    lines.filter((line) => fromSender.has(line)),
    headerLines(sent),
  );
  const added = lines.filter((line) => !fromSender.has(line)).map((line) => line.split(':')[0]!.toLowerCase());
  const documented = ['hookonce-attempt', 'hookonce-key', 'hookonce-sender', 'x-forwarded-for', 'x-forwarded-proto'];
  const hopByHop = ['host', 'content-length', 'connection'];
  assert.deepEqual(added.filter((header) => !hopByHop.includes(header)).sort(), documented);
  assert.equal(visit!.attempt, 1);
});

test('B22: a character split between two TCP writes arrives whole', async () => {
  const body = Buffer.from('{"t":"café 😀 \u2028"}');
  const emoji = body.indexOf(Buffer.from('😀'));
  const { headers } = github('B22', body);
  const url = `${cluster.gateways[0]!.url}/github`;
  const head = postHead(url, [...headerLines(headers), `Content-Length: ${body.length}`]);
  const reply = await rawExchange(url, [head, body.subarray(0, emoji + 2), body.subarray(emoji + 2)]);
  assert.equal(reply.status, 200);
  assertArrived('B22', body);
});

test('B24: numbers, spacing, escapes and duplicate keys arrive as they were signed', async () => {
  const body = Buffer.from('{ "id":"e1","q":1.0,"big":12345678901234567890,"e":"\\u00e9","a":1,"a":2 }');
  assert.equal((await cluster.post(0, '/custom/b24', custom(body))).status, 200);
  assertArrived('e1', body);
});

test('B26: a form is verified and forwarded as it was posted', async () => {
  const body = Buffer.from('payload=%7B%22id%22%3A%22e2%22%7D&x=a+b');
  const type = 'application/x-www-form-urlencoded';
  const reply = await cluster.post(0, '/github', signers.github(secrets.github, 'B26', body, type));
  assert.equal(reply.status, 200);
  assertArrived('B26', body);
  assert.deepEqual(allHeaders(cluster.application.of('B26')[0]!.headers, 'content-type'), [type]);
});

test('B27: no body and no content type reach the application as they are', async () => {
  const url = `${cluster.gateways[0]!.url}/github`;
  const cases = [
    { id: 'B27-1', body: '', lines: ['Content-Type: application/json', 'Content-Length: 0'] },
    { id: 'B27-2', body: 'abc', lines: ['Content-Length: 3'] },
    { id: 'B27-3', body: '', lines: [] },
  ];
  for (const { id, body, lines } of cases) {
    const signature = `X-Hub-Signature-256: sha256=${signers.hmacHex(secrets.github, body)}`;
    const reply = await rawExchange(url, [postHead(url, [`X-GitHub-Delivery: ${id}`, signature, ...lines]) + body]);
    assert.equal(reply.status, 200, id);
    assertArrived(id, Buffer.from(body));
  }
});

test('B28: any content type is forwarded verbatim', async () => {
  const types = [
    ...['application/json', 'application/json; charset=utf-8', 'APPLICATION/JSON', 'application/vnd.x+json'],
    ...['text/plain', 'application/json;charset="utf-8"', 'json'],
  ];
  const body = Buffer.from('{"a":1}');
  for (const [n, type] of types.entries()) {
    const id = `B28-${n}`;
    assert.equal((await cluster.post(0, '/github', signers.github(secrets.github, id, body, type))).status, 200, type);
    assertArrived(id, body);
    assert.deepEqual(allHeaders(cluster.application.of(id)[0]!.headers, 'content-type'), [type]);
  }
});

test('B31: a byte order mark hides no identity and stays where it was', async () => {
  const body = Buffer.concat([bom, Buffer.from('{"id":"e4"}')]);
  assert.equal((await cluster.post(0, '/custom/b31', custom(body))).status, 200);
  const again = await cluster.post(1, '/custom/b31', custom(body));
  assert.deepEqual([again.status, outcome(again)], [200, 'duplicate']);
  assertArrived('e4', body);
});

test('B33: newlines of every kind arrive', async () => {
  const body = Buffer.from('{\n  "id": "e5",\r\n  "list": [\n    1\n  ]\n}\n');
  assert.equal((await cluster.post(0, '/custom/b33', custom(body))).status, 200);
  assertArrived('e5', body);
});
