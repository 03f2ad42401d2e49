import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { test } from 'node:test';
import type { RawHeaders, Received } from '../../src/core/delivery.ts';
import { parsePublicUrl, publicUrlOf } from '../../src/core/public-url.ts';
import { ed25519Secret, p256Secret } from '../../src/core/secret.ts';
import type { Sender } from '../../src/core/sender.ts';
import type { TemplateRule } from '../../src/core/signature-template.ts';
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

test('B24, B33: spacing, numbers, escapes, doubled keys and newlines are signed as they stand', () => {
  const bodies = [
    '{ "id":"e1","q":1.0,"big":12345678901234567890,"e":"\\u00e9","a":1,"a":2 }',
    '{\n  "id": "e1",\r\n  "a": 1\n}\n',
    '{"id":"e1"}\n\n',
  ];
  for (const text of bodies) {
    const body = Buffer.from(text);
    assert.equal(verdict(github, ['X-Hub-Signature-256', `sha256=${hex(body)}`], body), 'verified');
    for (const changed of [JSON.stringify(JSON.parse(text)), text.replaceAll('\r', ''), text.trim()]) {
      if (changed === text) continue;
      const signed = ['X-Hub-Signature-256', `sha256=${hex(body)}`];
      assert.equal(verdict(github, signed, Buffer.from(changed)), 'bad_signature', changed);
    }
  }
});

test('B26, B27, B28: whatever the body is and its content type says, the bytes are what is signed', () => {
  const forms = ['payload=%7B%22id%22%3A%22e2%22%7D&x=a+b', '', 'abc', '{"id":"e1"}'];
  const types = [
    [],
    ['json'],
    ['application/x-www-form-urlencoded'],
    ['APPLICATION/JSON'],
    ['application/vnd.x+json'],
    [''],
  ];
  for (const text of forms) {
    for (const [type] of types) {
      const body = Buffer.from(text);
      const headers = type === undefined ? [] : ['Content-Type', type];
      assert.equal(verdict(github, [...headers, 'X-Hub-Signature-256', `sha256=${hex(body)}`], body), 'verified');
    }
  }
  const decoded = Buffer.from('{"id":"e2"}');
  assert.equal(
    verdict(github, ['X-Hub-Signature-256', `sha256=${hex(decoded)}`], Buffer.from(forms[0]!)),
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
  const rule: TemplateRule = {
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
        if (sender.signature.scheme === 'none') continue;
        const url = 'https://example.com/hook';
        const result = verify(sender.signature, [secret], received(lines.flat(), Buffer.from(body)), nowMs, { url });
        assert.ok('kind' in result, sender.name);
        assert.ok(!result.message.includes(secret.toString()));
      }
    }),
  );
});

test('every hash that HMAC is used with is told from the others', () => {
  const body = Buffer.from('{}');
  for (const hash of ['sha1', 'sha256', 'sha512']) {
    for (const other of ['sha1', 'sha256', 'sha512'] as const) {
      const signature = createHmac(hash, secret).update(body).digest('base64');
      const rule: TemplateRule = {
        scheme: `hmac-${other}`,
        signature: { header: 'x-signature', prefix: '', encoding: 'base64' },
        signed: '{body}',
      };
      assert.equal(verdict(rule, ['X-Signature', signature], body), hash === other ? 'verified' : 'bad_signature');
    }
  }
});

test('public keys check their own kind of signature, and shared secrets never do', () => {
  const body = Buffer.from('{"id":1}');
  const ed = generateKeyPairSync('ed25519');
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const rule = (scheme: 'ed25519' | 'ecdsa-p256' | 'hmac-sha256'): TemplateRule => ({
    scheme,
    signature: { header: 'x-signature', prefix: '', encoding: 'base64' },
    signed: '{body}',
  });
  const raw = Buffer.from(ed.publicKey.export({ format: 'jwk' }).x!, 'base64url');
  const der = ec.publicKey.export({ type: 'spki', format: 'der' });
  const signatures = {
    ed25519: sign(undefined, body, ed.privateKey),
    'ecdsa-p256': sign('sha256', body, ec.privateKey),
    'hmac-sha256': hmac(raw, body),
    confused: hmac(der, body),
  };
  const keys = [ed25519Secret(raw.toString('hex')), p256Secret(der.toString('base64'))];
  assert.ok(!keys.some((key) => typeof key === 'string'));
  for (const scheme of ['ed25519', 'ecdsa-p256', 'hmac-sha256'] as const) {
    for (const [name, signature] of Object.entries(signatures)) {
      const signed = received(['x-signature', signature.toString('base64')], body);
      const right = name === scheme && scheme !== 'hmac-sha256';
      assert.equal('kind' in verify(rule(scheme), keys as KeyObject[], signed, nowMs), !right, `${scheme} ${name}`);
      assert.ok(scheme === 'hmac-sha256' || 'kind' in verify(rule(scheme), [raw, der], signed, nowMs));
    }
  }
  const pem = String(ec.publicKey.export({ type: 'spki', format: 'pem' }));
  assert.ok(typeof p256Secret(pem) === 'object');
  for (const wrong of [String(ec.privateKey.export({ type: 'pkcs8', format: 'pem' })), '', 'AAAA', raw.toString('hex')])
    assert.equal(typeof p256Secret(wrong), 'string');
  assert.equal(typeof ed25519Secret(pem), 'string');
});

test('several signatures come in lines of one name, or in numbered headers', () => {
  const body = Buffer.from('{}');
  const [good, bad] = [hmac(secret, body).toString('base64'), hmac(Buffer.from('x'), body).toString('base64')];
  const { docusign, 'mollie-nextgen': mollie } = Object.fromEntries(senders) as Record<string, Sender>;
  const numbered = (...lines: string[]) => verdict(docusign!.signature, lines, body);
  assert.equal(numbered('X-DocuSign-Signature-1', bad, 'x-docusign-signature-2', good), 'verified');
  assert.equal(numbered('X-DocuSign-Signature-1', bad, 'X-DocuSign-Signature-2', bad), 'bad_signature');
  for (const name of [
    'X-DocuSign-Signature',
    'X-DocuSign-Signature-',
    'X-DocuSign-Signature-x',
    'X-DocuSign-Signature-1-2',
  ])
    assert.equal(numbered(name, good), 'missing_signature', name);
  const line = (text: string) => ['X-Mollie-Signature', `sha256=${Buffer.from(text, 'base64').toString('hex')}`];
  assert.equal(verdict(mollie!.signature, [...line(bad), ...line(good)], body), 'verified');
  assert.equal(verdict(mollie!.signature, line(bad), body), 'bad_signature');
  assert.equal(verdict(mollie!.signature, [], body), 'missing_signature', 'a missing signature is no classic webhook');
});

test('of a window that covers retries only the past is long', () => {
  const { signature, decodeSecret } = senders.get('mailgun')!;
  const at = (time: number | string) => {
    const token = 'a'.repeat(50);
    const text = hmac(secret, Buffer.from(`${time}${token}`)).toString('hex');
    const body = JSON.stringify({ signature: { timestamp: String(time), token, signature: text }, 'event-data': {} });
    const result = verify(
      signature,
      [decodeSecret(secret.toString()) as Buffer],
      received([], Buffer.from(body)),
      nowMs,
    );
    return 'kind' in result ? result.reason : 'verified';
  };
  for (const time of [now - 9 * 3600, now, now + 300]) assert.equal(at(time), 'verified');
  for (const time of [now - 9 * 3600 - 1, now + 301]) assert.equal(at(time), 'stale_signature');
  assert.equal(at(`${now}0`), 'bad_signature', 'a digit of the token does not move');
});

test('B42: the signature is checked against the configured URL, whatever headers say about it', () => {
  const { signature } = senders.get('twilio')!;
  const body = Buffer.from('From=%2B1&Body=hi');
  const publicUrl = 'https://pub.example/hooks/tw';
  const signed = createHmac('sha1', secret).update(`${publicUrl}?x=1BodyhiFrom+1`).digest('base64');
  const send = (target: string, written: string | undefined, headers: RawHeaders = []) => {
    const lines = ['Host', 'pub.example', 'X-Forwarded-Proto', 'https', 'X-Twilio-Signature', signed, ...headers];
    const url = publicUrlOf(
      { path: '/hooks/tw', publicUrl: written === undefined ? undefined : parsePublicUrl(written)! },
      target,
    );
    const result = verify(signature, [secret], { method: 'POST', target, headers: lines, body }, nowMs, { url });
    return 'kind' in result ? result.reason : 'verified';
  };
  for (const written of [publicUrl, `${publicUrl}?x=1`, 'https://pub.example', 'https://pub.example:443']) {
    assert.equal(send('/hooks/tw?x=1', written), 'verified', written);
    assert.equal(send('/hooks/tw?x=1', written, ['X-Forwarded-Host', 'evil.test']), 'verified');
  }
  for (const written of [
    'http://pub.example',
    'https://evil.test',
    'https://pub.example/other',
    `${publicUrl}?x=2`,
    undefined,
  ])
    assert.equal(send('/hooks/tw?x=1', written, ['X-Forwarded-Host', 'pub.example']), 'bad_signature', String(written));
  for (const target of ['/hooks/tw?x=2', '/hooks/tw?x=1&y=2', '/hooks/tw/?x=1', '/HOOKS/tw?x=1'])
    assert.equal(send(target, `${publicUrl}?x=1`), 'bad_signature', target);
});

test('a public URL stands for the path of its route', () => {
  const url = (path: string, written: string, target: string) =>
    publicUrlOf({ path, publicUrl: parsePublicUrl(written)! }, target);
  assert.equal(url('/a', 'https://h', '/a?b=%2F'), 'https://h/a?b=%2F');
  assert.equal(url('/a', 'https://h/', '/x/../a'), 'https://h/x/../a');
  assert.equal(url('/a', 'https://h/p', '/a'), 'https://h/p');
  assert.equal(url('/a', 'https://h/p', '/a?q'), 'https://h/p?q');
  assert.equal(url('/a/*', 'https://h/p', '/a/b/c?q=1'), 'https://h/p/b/c?q=1');
  assert.equal(url('/a/*', 'https://h/p?k=1', '/a/b'), 'https://h/p/b?k=1');
  assert.equal(url('/a', 'https://h/p?k=1', '/a'), 'https://h/p?k=1');
  assert.equal(url('/a', 'https://h/p?k=1', '/a?k=1&l=2'), 'https://h/p?k=1&l=2');
  for (const target of ['/a?k=2', '/a?k=12', '/a?', '/ab', '/A', '/a/'])
    assert.equal(url('/a', 'https://h/p?k=1', target), undefined, target);
  assert.equal(
    url('/ü', 'https://h/ü', Buffer.from('/ü?x').toString('latin1')),
    Buffer.from('https://h/ü?x').toString('latin1'),
  );
  for (const text of [
    '',
    'h/p',
    '//h/p',
    'ftp://h/',
    'https://',
    'https://h/p#f',
    'https://h p/',
    'https://[h/',
    'javascript:x',
  ])
    assert.equal(parsePublicUrl(text), undefined, text);
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
