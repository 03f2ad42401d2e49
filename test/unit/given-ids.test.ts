/** The event that an operator names is the event that a delivery names. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RawHeaders, Verified } from '../../src/core/delivery.ts';
import { findEvent, type Given } from '../../src/core/given-ids.ts';
import { identify, type IdentityPart, type IdentityRule } from '../../src/core/identify.ts';
import { parsePointer } from '../../src/core/json-pointer.ts';
import type { Route } from '../../src/core/route.ts';
import { senders } from '../../src/senders/index.ts';

const json = (pointer: string, optional = false): IdentityPart => ({
  from: 'json',
  pointer: parsePointer(pointer)!,
  optional,
});
const rule = (...parts: IdentityPart[]): IdentityRule => ({
  parts,
  bodyHash: false,
  missing: 'reject',
  scope: 'route',
});

function find(identity: IdentityRule, ids: readonly string[], more: Partial<Given> = {}): ReturnType<typeof findEvent> {
  return findEvent('s', [{ name: 'r', identity } as Route], { route: 'r', ids, ...more });
}

/** The key by these ids. */
function named(identity: IdentityRule, ...ids: string[]): string {
  const event = find(identity, ids);
  return typeof event === 'string' ? assert.fail(event) : event.key.id;
}

function problem(identity: IdentityRule, ...ids: string[]): string {
  const event = find(identity, ids);
  return typeof event === 'string' ? event : assert.fail('it was found');
}

/** The key of a delivery. */
function keyed(identity: IdentityRule, body: string, headers: RawHeaders = [], more: object = {}): string {
  const delivery = { method: 'POST', target: '/', headers, body: Buffer.from(body), ...more } as unknown as Verified;
  const key = identify(identity, 's', 'r', delivery);
  return 'kind' in key ? assert.fail(key.message) : key.id;
}

test('an id in a header, a form field, a signed message id, and a body by its hash', () => {
  assert.equal(
    named(senders.get('github')!.identity, 'G-1'),
    keyed(senders.get('github')!.identity, '', ['X-GitHub-Delivery', ' G-1 ']),
  );
  const form = rule({ from: 'form', field: 'id' });
  assert.equal(named(form, 'a b'), keyed(form, 'id=a+b', ['Content-Type', 'application/x-www-form-urlencoded']));
  const signed = rule({ from: 'signed-id' });
  assert.equal(named(signed, 'msg_1'), keyed(signed, '', [], { signedId: 'msg_1' }));
  const sha256 = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
  const hashed: IdentityRule = { ...rule(json('/a')), bodyHash: true };
  assert.equal(named(rule({ from: 'body' }), sha256.toUpperCase()), keyed(rule({ from: 'body' }), 'abc'));
  assert.notEqual(named(hashed, 'x', sha256), named(rule(json('/a')), 'x'));
});

test('of JSON, what looks like a number is one, quotes make it a text, and anything else is a text', () => {
  const id = rule(json('/id'));
  assert.equal(named(id, 'evt_1'), keyed(id, '{"id":"evt_1"}'));
  assert.equal(named(id, '123'), keyed(id, '{"id":123}'));
  assert.equal(named(id, '"123"'), keyed(id, '{"id":"123"}'));
  assert.equal(named(id, '1.0'), keyed(id, '{"id":1.0}'));
  assert.equal(named(id, '007'), keyed(id, '{"id":"007"}'));
  assert.equal(named(id, '"\\ud800"'), keyed(id, '{"id":"\\ud800"}'));
  assert.match(problem(id, '"open'), /begins with a quote, but is no JSON string/);
  const event = find(id, ['123']);
  assert.deepEqual(typeof event === 'string' ? event : event.named, ['JSON /id, a number']);
});

test('several ids in the order of the route; an empty one where an optional part is missing', () => {
  const two = senders.get('slack')!.identity;
  assert.equal(named(two, 'Ev1', 'A1'), keyed(two, '{"event_id":"Ev1","api_app_id":"A1"}'));
  assert.equal(named(two, 'Ev1', ''), keyed(two, '{"event_id":"Ev1"}'));
  assert.equal(
    problem(two, 'Ev1'),
    "route r names an event by 2 ids, found 1; needs JSON /event_id, then JSON /api_app_id ('' where there is none)",
  );
  assert.match(problem(two, '', 'A1'), /JSON \/event_id is empty/);
  assert.equal(problem(rule(json('/a', true)), ''), 'nothing names the event');
});

test('a route that names events in more than one way needs the key', () => {
  const key = 'Bgahb4vZQ1mYl2mVtT3sHw';
  for (const sender of ['zoom', 'docusign']) {
    const { identity } = senders.get(sender)!;
    assert.match(problem(identity, 'x'), /needs|give the key, as in the header Hookonce-Key/);
    const event = find(identity, [], { key });
    assert.equal(typeof event === 'string' ? event : event.key.id, key);
  }
  assert.equal(find(rule(json('/id')), ['x'], { key }), 'give either ids or a key, not both');
  assert.equal(
    find(rule(json('/id')), [], { key: `${key}=` }),
    'a key has 22 letters, digits, - and _, as in the header Hookonce-Key',
  );
});

test('another service or route is another event, and a route that is not there is said', () => {
  const github = { name: 'github', identity: senders.get('github')!.identity } as Route;
  const other = { ...github, name: 'other' };
  const keys = [
    findEvent('s', [github, other], { route: 'github', ids: ['1'] }),
    findEvent('s', [github, other], { route: 'other', ids: ['1'] }),
    findEvent('s2', [github, other], { route: 'github', ids: ['1'] }),
  ].map((event) => (typeof event === 'string' ? assert.fail(event) : event.key.id));
  assert.equal(new Set(keys).size, 3);
  assert.equal(
    findEvent('s', [github, other], { route: 'githib', ids: ['1'] }),
    'there is no route githib; there is github, other',
  );
});
