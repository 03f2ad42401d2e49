import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RawHeaders, Rejected, Verified } from '../../src/core/delivery.ts';
import { identify, type IdentityPart, type IdentityRule } from '../../src/core/identify.ts';
import { formatPointer, parsePointer } from '../../src/core/json-pointer.ts';
import { verify } from '../../src/core/verify.ts';
import { senders } from '../../src/senders/index.ts';

const header = (...names: [string, ...string[]]): IdentityPart => ({ from: 'header', names });
const json = (pointer: string): IdentityPart => ({ from: 'json', pointer: parsePointer(pointer)! });
const form = (field: string): IdentityPart => ({ from: 'form', field });
const rule = (...parts: IdentityPart[]): IdentityRule => ({
  parts,
  bodyHash: false,
  missing: 'reject',
  scope: 'route',
});

test('a key is 22 characters of base64url, and the same for the same event', () => {
  const key = name(rule(header('x-id')), '', ['X-Id', 'a'.repeat(300)]);
  assert.match(key, /^[A-Za-z0-9_-]{22}$/);
  assert.equal(name(rule(header('X-ID')), 'another body', ['x-id', ` ${'a'.repeat(300)} `]), key);
});

test('B09: one id on two routes, or in two services, is two events', () => {
  const github = senders.get('github')!.identity;
  const delivery = verified('{}', ['X-GitHub-Delivery', 'G1']);
  const keys = [
    ['s', 'app1'],
    ['s', 'app2'],
    ['s2', 'app1'],
    ['sa', 'pp1'],
  ].map(([service, route]) => identify(github, service!, route!, delivery));
  assert.equal(new Set(keys.map((key) => ('kind' in key ? assert.fail() : key.id))).size, 4);
});

test('B12: a missing or empty part leaves no identity, and never a shared one', () => {
  const github = senders.get('github')!.identity;
  for (const headers of [[], ['X-GitHub-Delivery', ''], ['X-GitHub-Delivery', '  ']]) {
    const refused = problem(github, '{}', headers);
    assert.equal(refused.reason, 'no_identity');
    assert.match(refused.message, /X-GitHub-Delivery is (missing|empty)/);
  }
  for (const id of ['x'.repeat(300), '%0a', 'a b', '}:l'])
    assert.match(name(github, '{}', ['X-GitHub-Delivery', id]), /^[A-Za-z0-9_-]{22}$/);
  for (const body of [
    '{}',
    '{"id":null}',
    '{"id":true}',
    '{"id":{}}',
    '{"id":["a"]}',
    '{"id":""}',
    '{"id":" "}',
    '"id"',
    'null',
    '',
    'id=1',
    '{"id":"a"',
    '[{"id":"a"}]',
  ]) {
    assert.equal(problem(rule(json('/id')), body).reason, 'no_identity', body);
  }
  for (const body of ['', 'id', 'id=', 'id=+', 'ID=1', '{"id":"a"}'])
    assert.equal(problem(rule(form('id')), body).reason, 'no_identity', body);
  assert.equal(
    problem(rule(header('x-id'), json('/id')), '{}', ['x-id', 'a']).reason,
    'no_identity',
    'every part counts',
  );
  assert.equal(problem(rule({ from: 'signed-id' }), '{}').reason, 'no_identity');
  assert.equal(problem(rule(), '{}').reason, 'no_identity', 'a rule without parts names nothing');
});

test('B14: only what has been verified can be identified', () => {
  const stripe = senders.get('stripe')!;
  const refused = verify(
    stripe.signature,
    [Buffer.from('s')],
    { method: 'POST', target: '/', headers: [], body: Buffer.from('{"id":"evt_1"}') },
    0,
  );
  assert.ok('kind' in refused && refused.kind === 'rejected');
  // @ts-expect-error a delivery that was not verified is of another type
  void (() => identify(stripe.identity, 's', 'r', { method: 'POST', target: '/', headers: [], body: Buffer.alloc(0) }));
});

test('B31: a byte order mark before the JSON does not hide the id', () => {
  assert.equal(name(rule(json('/id')), '\ufeff{"id":"e4"}'), name(rule(json('/id')), '{"id":"e4"}'));
});

test('B41: the same event signed with another secret is the same event', () => {
  const stripe = senders.get('stripe')!.identity;
  assert.equal(
    name(stripe, '{"id":"evt_1"}', ['Stripe-Signature', 't=1,v1=aa']),
    name(stripe, '{"id":"evt_1"}', ['Stripe-Signature', 't=2,v1=bb']),
  );
});

test('numbers keep every digit, and are no strings', () => {
  const ids = [
    '12345678901234567890',
    '12345678901234567891',
    '9007199254740992',
    '9007199254740993',
    '1',
    '1.0',
    '1e400',
    '1e401',
    '-0',
    '0',
    '"1"',
    '"12345678901234567890"',
  ];
  const keys = ids.map((id) => name(rule(json('/data/id')), `{"data":{"a":[1,2],"id":${id},"b":1.5}}`));
  assert.equal(new Set(keys).size, ids.length);
  assert.notEqual(name(rule(json('/id')), '{"id":"1"}'), name(rule(header('x')), '', ['x', '1']));
  assert.notEqual(name(rule(form('id')), 'id=1'), name(rule(header('x')), '', ['x', '1']));
});

test('JSON is read as JSON.parse reads it: last key wins, own members only, escapes are resolved', () => {
  const id = rule(json('/id'));
  assert.equal(name(id, '{"id":"a","id":"b"}'), name(id, '{"id":"b"}'));
  assert.equal(name(id, '{"id":1,"id":2}'), name(id, '{"id":2}'));
  assert.equal(name(id, '{"id":"\\u00e9\\/"}'), name(id, '{"id":"é/"}'));
  assert.notEqual(name(id, '{"id":"\\ud800"}'), name(id, '{"id":"\\ud801"}'), 'lone surrogates stay apart');
  for (const pointer of [
    '/__proto__/id',
    '/constructor/name',
    '/toString',
    '/list/length',
    '/text/length',
    '/text/0',
    '/list/-',
    '/list/00',
  ]) {
    assert.equal(problem(rule(json(pointer)), '{"list":["a"],"text":"abc"}').reason, 'no_identity', pointer);
  }
  assert.ok(name(rule(json('/__proto__/id')), '{"__proto__":{"id":"a"}}'));
  assert.equal(({} as { id?: string }).id, undefined);
  assert.equal(
    name(rule(json('/list/1/id')), '{"list":[1,{"id":"a"}]}'),
    name(rule(json('/a~1b/~01')), '{"a/b":{"~1":"a"}}'),
  );
  assert.equal(name(rule(json('')), '"a"'), name(rule(json('/')), '{"":"a"}'));
});

test('a body that is no UTF-8 is read where it can be; a name that is none names nothing', () => {
  const broken = (id: string) => Buffer.from(`{"id":"${id}","a":"\xff\xfe"}`, 'latin1');
  assert.equal(name(rule(json('/id')), broken('e1')), name(rule(json('/id')), '{"id":"e1"}'));
  assert.equal(problem(rule(json('/id')), broken('\xff')).reason, 'no_identity');
  assert.equal(problem(rule(form('id')), 'id=%ff').reason, 'no_identity');
});

test('deep nesting costs at most the identity', () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  assert.equal(name(rule(json('/id')), `{"a":${deep},"id":"e1"}`), name(rule(json('/id')), '{"id":"e1"}'));
  assert.equal(problem(rule(json('/id')), `{"a":${deep},"id":1}`).reason, 'no_identity');
  assert.equal(problem(rule(json('/id')), '['.repeat(1_000_000)).reason, 'no_identity');
});

test('form fields are decoded', () => {
  const id = rule(form('the id'));
  assert.equal(name(id, 'a=1&the+id=x%20%C3%A9&b'), name(id, 'the%20id=x+é'));
  assert.equal(
    name(rule(form('?id')), '?id=1'),
    name(rule(form('?id')), '%3Fid=1'),
    'a question mark is no prefix here',
  );
  assert.ok(name(rule(form('__proto__')), '__proto__=1'));
});

test('a name given twice must say the same twice', () => {
  assert.equal(problem(rule(header('x-id')), '', ['X-Id', 'a', 'x-id', 'b']).reason, 'no_identity');
  assert.equal(
    name(rule(header('x-id')), '', ['X-Id', 'a', 'x-id', 'a']),
    name(rule(header('x-id')), '', ['X-Id', 'a']),
  );
  assert.equal(problem(rule(form('id')), 'id=a&id=b').reason, 'no_identity');
  assert.equal(name(rule(form('id')), 'id=a&id=a'), name(rule(form('id')), 'id=a'));
});

test('of alternative headers the first that is there counts', () => {
  const either = rule(header('shopify-webhook-id', 'x-shopify-webhook-id'));
  assert.equal(
    name(either, '', ['X-Shopify-Webhook-Id', 'b', 'Shopify-Webhook-Id', 'a']),
    name(either, '', ['Shopify-Webhook-Id', 'a']),
  );
  assert.match(problem(either, '').message, /shopify-webhook-id/);
});

test('an optional part names where it is there, and is not enough alone', () => {
  const optional: IdentityPart = { from: 'json', pointer: ['app'], optional: true };
  const both = rule(json('/id'), optional);
  assert.equal(
    new Set(['{"id":"a"}', '{"id":"a","app":"x"}', '{"id":"a","app":"y"}'].map((body) => name(both, body))).size,
    3,
  );
  assert.equal(name(both, '{"id":"a","app":""}'), name(both, '{"id":"a"}'));
  assert.equal(problem(rule(optional), '{}').reason, 'no_identity');
});

test('the body hash is a part of its own', () => {
  const hashed: IdentityRule = { ...rule(), bodyHash: true };
  assert.equal(name(hashed, '{}', ['x-id', 'a']), name(hashed, '{}', ['x-id', 'b']));
  assert.notEqual(name(hashed, '{}'), name(hashed, '{} '));
  const both: IdentityRule = { ...rule(header('x-id')), bodyHash: true };
  assert.notEqual(name(both, '{}', ['x-id', 'a']), name(both, '{ }', ['x-id', 'a']));
  assert.ok(name(hashed, ''), 'an empty body has a hash too');
});

test('parts with other boundaries are another name', () => {
  const text = fc.stringMatching(/^[a-c]{1,4}$/);
  const parts = fc.tuple(text, text, text, text);
  const keyOf = ([service, route, a, b]: readonly string[]): string => {
    const key = identify(rule(header('a'), header('b')), service!, route!, verified('', ['a', a!, 'b', b!]));
    return 'kind' in key ? assert.fail(key.message) : key.id;
  };
  fc.assert(
    fc.property(parts, parts, (one, two) => assert.equal(keyOf(one) === keyOf(two), one.join() === two.join())),
    { numRuns: 500 },
  );
  assert.notEqual(keyOf(['s', 'r', 'ab', 'c']), keyOf(['s', 'r', 'a', 'bc']));
  assert.notEqual(keyOf(['s', 'ra', 'b', 'c']), keyOf(['s', 'r', 'ab', 'c']));
});

test('whatever the body is, the answer is a value', () => {
  const every = [
    rule(json('/id')),
    rule(json('/0/a')),
    rule(form('id')),
    rule(header('x-id')),
    { ...rule(), bodyHash: true },
  ];
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
    fc.json().map((text) => Buffer.from(text)),
  );
  fc.assert(
    fc.property(body, fc.string({ unit: 'binary' }), (bytes, value) =>
      every.forEach((one) => identify(one, 's', 'r', verified(bytes, ['x-id', value]))),
    ),
  );
});

test('JSON pointers are those of RFC 6901', () => {
  assert.deepEqual(parsePointer(''), []);
  assert.deepEqual(parsePointer('/'), ['']);
  assert.deepEqual(parsePointer('/a~1b/m~0n/~01/0'), ['a/b', 'm~n', '~1', '0']);
  for (const text of ['a', '$.a', '/~', '/~2', '/a~']) assert.equal(parsePointer(text), undefined, text);
  fc.assert(
    fc.property(fc.array(fc.string(), { minLength: 1 }), (tokens) =>
      assert.deepEqual(parsePointer(formatPointer(tokens)), tokens),
    ),
  );
});

function verified(body: string | Buffer, headers: RawHeaders = []): Verified {
  const result = verify(
    { scheme: 'none' },
    [],
    { method: 'POST', target: '/hook', headers, body: Buffer.from(body as string) },
    0,
  );
  return 'kind' in result ? assert.fail(result.message) : result;
}

function name(one: IdentityRule, body: string | Buffer, headers: RawHeaders = []): string {
  const key = identify(one, 'service', 'route', verified(body, headers));
  return 'kind' in key ? assert.fail(key.message) : key.id;
}

function problem(one: IdentityRule, body: string | Buffer, headers: RawHeaders = []): Rejected {
  const key = identify(one, 'service', 'route', verified(body, headers));
  return 'kind' in key ? key : assert.fail('it has an identity');
}
