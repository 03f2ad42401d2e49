import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import type { RawHeaders, Received } from '../../src/core/delivery.ts';
import type { HmacRule } from '../../src/core/signature-hmac.ts';
import { templateProblem } from '../../src/core/signed-template.ts';
import { verify, type SignatureRule } from '../../src/core/verify.ts';
import { senders } from '../../src/senders/index.ts';

const now = 1_767_225_600;
const nowMs = now * 1000 + 400;
const secret = Buffer.from('a secret for tests');
const github = senders.get('github')!.signature;
const stripe = senders.get('stripe')!.signature;
const standard = senders.get('standard-webhooks')!.signature;

test('B22: real multi-byte characters are signed as bytes', () => {
  const body = Buffer.from('{"t":"café 😀 \u2028"}');
  assert.equal(verdict(github, ['X-Hub-Signature-256', `sha256=${hex(body)}`], body), 'verified');
  assert.equal(
    verdict(github, ['X-Hub-Signature-256', `sha256=${hex(Buffer.from(body.toString('latin1')))}`], body),
    'bad_signature',
  );
});

test('B31: a byte order mark is part of what is signed', () => {
  const marked = Buffer.from('\ufeff{"id":"e4"}');
  assert.equal(verdict(github, ['X-Hub-Signature-256', `sha256=${hex(marked)}`], marked), 'verified');
  assert.equal(verdict(github, ['X-Hub-Signature-256', `sha256=${hex(marked.subarray(3))}`], marked), 'bad_signature');
});

test('B36: a signature of the wrong length or shape is refused, never thrown at', () => {
  const body = Buffer.from('{}');
  const right = hex(body);
  assert.equal(verdict(github, [], body), 'missing_signature');
  assert.equal(verdict(github, ['X-Hub-Signature-256', ''], body), 'missing_signature');
  const values = [
    'sha256=',
    'sha256=abc',
    `sha256=${right.slice(1)}`,
    `sha256=${right}0`,
    `sha256=${'g'.repeat(64)}`,
    `sha1=${createHmac('sha1', secret).update(body).digest('hex')}`,
    `sha256=${'é'.repeat(32)}`,
    'x'.repeat(8192),
    right,
    `SHA256=${right}`,
  ];
  for (const value of values)
    assert.equal(verdict(github, ['X-Hub-Signature-256', value], body), 'bad_signature', value.slice(0, 80));
  const good = `sha256=${right}`;
  assert.equal(
    verdict(github, ['X-Hub-Signature-256', good, 'x-hub-signature-256', 'sha256=abc'], body),
    'bad_signature',
  );
  assert.equal(verdict(github, ['X-Hub-Signature-256', good, 'x-hub-signature-256', good], body), 'bad_signature');
  assert.equal(verdict(github, ['X-Hub-Signature-256', good], body), 'verified');
});

test('B38: a timestamp is checked on both sides, and there must be exactly one', () => {
  const body = Buffer.from('{"id":"evt_1"}');
  const at = (t: string) => verdict(stripe, ['Stripe-Signature', `t=${t},v1=${hex(`${t}.`, body)}`], body);
  for (const offset of [-300, -299, 0, 299, 300]) assert.equal(at(String(now + offset)), 'verified', String(offset));
  for (const offset of [-301, 301, 600]) assert.equal(at(String(now + offset)), 'stale_signature', String(offset));
  for (const t of [
    'abc',
    '',
    `${now}abc`,
    `${now}.0`,
    `+${now}`,
    `-${now}`,
    '1e9',
    `0x${now.toString(16)}`,
    '9'.repeat(16),
  ]) {
    assert.equal(at(t), 'bad_signature', t);
  }
  assert.equal(verdict(stripe, ['Stripe-Signature', `v1=${hex('.', body)}`], body), 'bad_signature');
  assert.equal(
    verdict(stripe, ['Stripe-Signature', `t=${now},t=${now},v1=${hex(`${now}.`, body)}`], body),
    'bad_signature',
  );
  assert.equal(
    verdict(stripe, ['Stripe-Signature', `t=1,v1=${hex(`${now}.`, body)}`], body),
    'bad_signature',
    'stale is only said of a right signature',
  );
});

test('B40: any of several v1 signatures may be the right one; other versions never are', () => {
  const body = Buffer.from('{"id":"evt_1"}');
  const good = hex(`${now}.`, body);
  const bad = '0'.repeat(64);
  const header = (...items: string[]) => verdict(stripe, ['Stripe-Signature', [`t=${now}`, ...items].join(',')], body);
  assert.equal(header(`v1=${bad}`, `v1=${good}`), 'verified');
  assert.equal(header(`v1=${good}`, `v1=${bad}`), 'verified');
  assert.equal(header(` v1=${bad}`, ` v1=${good}`), 'verified');
  assert.equal(header(`v0=${good}`), 'bad_signature');
  assert.equal(header(`v0=${good}`, `v1=${bad}`), 'bad_signature');
  assert.equal(header(...Array.from({ length: 49 }, () => `v1=${bad}`), `v1=${good}`), 'verified');
  assert.equal(
    header(...Array.from({ length: 100 }, () => `v1=${bad}`), `v1=${good}`),
    'bad_signature',
    'only so many are looked at',
  );
});

test('B41: any of several secrets may have signed', () => {
  const body = Buffer.from('{}');
  const [fresh, old, retired] = ['new', 'old', 'retired'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];
  const signedWith = (key: Buffer) =>
    received(['X-Hub-Signature-256', `sha256=${hmac(key, body).toString('hex')}`], body);
  const passes = (secrets: Buffer[], key: Buffer) => !('kind' in verify(github, secrets, signedWith(key), nowMs));
  assert.ok(passes([fresh, old], old));
  assert.ok(passes([fresh, old], fresh));
  assert.ok(!passes([fresh, old], retired));
  assert.ok(!passes([fresh], old));
});

test('no secret, or an empty one, verifies nothing', () => {
  const body = Buffer.from('{}');
  const signed = received(['X-Hub-Signature-256', `sha256=${hmac(Buffer.alloc(0), body).toString('hex')}`], body);
  for (const secrets of [[], [Buffer.alloc(0)]]) {
    for (const delivery of [signed, received(['X-Hub-Signature-256', 'sha256='], body)])
      assert.ok('kind' in verify(github, secrets, delivery, nowMs));
  }
});

test('a message id that contains the delimiter is refused; the signed id is handed on', () => {
  const body = Buffer.from('{}');
  const headers = (id: string, signature: Buffer) => [
    'webhook-id',
    id,
    'webhook-timestamp',
    String(now),
    'webhook-signature',
    `v1,${signature.toString('base64')}`,
  ];
  const sign = (id: string) => headers(id, hmac(secret, Buffer.from(`${id}.${now}.`), body));
  assert.equal(verdict(standard, sign('msg_x.1'), body), 'bad_signature');
  const verified = verify(standard, [secret], received(sign('msg_x'), body), nowMs);
  assert.ok(!('kind' in verified));
  assert.equal(verified.signedId, 'msg_x');
  assert.equal(verified.body, body);
  assert.equal(verdict(standard, sign('msg_x').slice(2), body), 'missing_signature');
  assert.equal(verdict(standard, [...sign('msg_x'), 'webhook-id', 'msg_x'], body), 'bad_signature');
});

test('header bytes above ASCII are signed as they were on the wire', () => {
  const id = Buffer.from('müsg').toString('latin1');
  const signature = hmac(secret, Buffer.from(`müsg.${now}.{}`)).toString('base64');
  assert.equal(
    verdict(
      standard,
      ['webhook-id', id, 'webhook-timestamp', String(now), 'webhook-signature', `v1,${signature}`],
      Buffer.from('{}'),
    ),
    'verified',
  );
});

test('a custom rule: own header, literal text around the fields, milliseconds', () => {
  const rule: HmacRule = {
    scheme: 'hmac-sha256',
    signature: { header: 'x-signature', prefix: '', encoding: 'hex' },
    timestamp: { from: { header: 'x-timestamp' }, unit: 'ms', toleranceMs: 1_000 },
    signed: 'ü:{timestamp}:{body}:end',
  };
  const body = Buffer.from([0xff, 0x00]);
  const at = (ms: number) =>
    verdict(rule, ['X-Signature', hex(`ü:${ms}:`, body, ':end').toUpperCase(), 'X-Timestamp', String(ms)], body);
  assert.deepEqual(
    [-1001, -1000, 1000, 1001].map((by) => at(nowMs + by)),
    ['stale_signature', 'verified', 'verified', 'stale_signature'],
  );
  assert.equal(verdict(rule, ['X-Signature', hex(':', body)], body), 'missing_signature');
});

test('no signature is checked only where the rule says so', () => {
  assert.equal(verdict({ scheme: 'none' }, [], Buffer.from('{}')), 'verified');
});

test('a template that could not protect is named', () => {
  const none = { timestamp: false, id: false };
  assert.equal(templateProblem('{body}', none), undefined);
  assert.equal(templateProblem('{"v":{body}}', none), undefined, 'braces of literal text');
  assert.equal(templateProblem('v0:{timestamp}:{body}', { timestamp: true, id: false }), undefined);
  assert.equal(templateProblem('{timestamp}{body}', { timestamp: true, id: false }), undefined);
  assert.equal(templateProblem('{id}.{timestamp}.{body}', { timestamp: true, id: true }), undefined);
  assert.match(templateProblem('', none)!, /\{body\} is missing/);
  assert.match(templateProblem('{body}{bdoy}', none)!, /\{bdoy\} is unknown/);
  assert.match(templateProblem('{body}.{body}', none)!, /twice/);
  assert.match(templateProblem('{timestamp}.{body}', none)!, /\{timestamp\} needs/);
  assert.match(templateProblem('{body}', { timestamp: true, id: false })!, /\{timestamp\} is missing/);
  assert.match(templateProblem('{id}.{body}', none)!, /\{id\} needs/);
  assert.match(templateProblem('{body}', { timestamp: false, id: true })!, /\{id\} is missing/);
  assert.match(templateProblem('{id}{body}', { timestamp: false, id: true })!, /run into each other/);
  assert.match(templateProblem('{body}{id}', { timestamp: false, id: true })!, /run into each other/);
});

test('no flipped bit of body, timestamp or id verifies', () => {
  const covered = fc.record({
    id: fc.stringMatching(/^[a-z0-9_]{1,12}$/),
    body: fc.uint8Array({ minLength: 1, maxLength: 40 }),
    at: fc.nat(),
    bit: fc.nat(7),
  });
  fc.assert(
    fc.property(covered, ({ id, body, at, bit }) => {
      const t = String(now);
      const signature = `v1,${hmac(secret, Buffer.from(`${id}.${t}.`), Buffer.from(body)).toString('base64')}`;
      const flip = (bytes: Buffer): Buffer => {
        const flipped = Buffer.from(bytes);
        flipped[at % bytes.length]! ^= 1 << bit;
        return flipped;
      };
      const send = (one: string, two: string, three: Buffer) =>
        verdict(standard, ['webhook-id', one, 'webhook-timestamp', two, 'webhook-signature', signature], three);
      assert.equal(send(id, t, Buffer.from(body)), 'verified');
      assert.notEqual(send(id, t, flip(Buffer.from(body))), 'verified');
      const flippedId = flip(Buffer.from(id)).toString('latin1');
      if (flippedId.trim() === flippedId) assert.notEqual(send(flippedId, t, Buffer.from(body)), 'verified');
      assert.notEqual(send(id, flip(Buffer.from(t)).toString('latin1'), Buffer.from(body)), 'verified');
    }),
  );
});

test('whatever stands in the headers, the answer is a value that tells no secret', () => {
  const names = [
    'stripe-signature',
    'webhook-signature',
    'webhook-id',
    'webhook-timestamp',
    'x-slack-signature',
    'x-slack-request-timestamp',
    'x-hub-signature-256',
  ];
  const item = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('t=1', 'v1=', 'v1,', 'v0=', 'sha256=', ',', ' ', String(now)),
  );
  const headers = fc.array(
    fc.tuple(
      fc.constantFrom(...names),
      fc.array(item, { maxLength: 6 }).map((items) => items.join('')),
    ),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(headers, fc.uint8Array({ maxLength: 8 }), (lines, body) => {
      for (const sender of senders.values()) {
        const result = verify(sender.signature, [secret], received(lines.flat(), Buffer.from(body)), nowMs);
        assert.ok('kind' in result);
        assert.ok(!result.message.includes(secret.toString()));
      }
    }),
  );
});

function verdict(rule: SignatureRule, headers: RawHeaders, body: Buffer): string {
  const result = verify(rule, [secret], received(headers, body), nowMs);
  return 'kind' in result ? result.reason : 'verified';
}

function received(headers: RawHeaders, body: Buffer): Received {
  return { method: 'POST', target: '/hook', headers, body };
}

function hmac(key: Buffer, ...pieces: Buffer[]): Buffer {
  return createHmac('sha256', key).update(Buffer.concat(pieces)).digest();
}

const hex = (...pieces: (string | Buffer)[]): string =>
  hmac(secret, ...pieces.map((piece) => Buffer.from(piece as string))).toString('hex');
