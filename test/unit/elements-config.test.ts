/** The setting `elements`: what it becomes, and what does not go together with it. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { senders } from '../../src/senders/index.ts';
import { accepted, complaints, routes, secret } from './config-source.ts';

const own =
  'verify: {scheme: hmac-sha256, header: x-sig}, secrets: [{env: SECRET}], elements: {at: /items, id: [/id, /at]}';
const custom = (more = '') => `routes: [{name: a, path: /a, ${own}${more}}]\n`;
const line = (more: string) => routes(`sender: line, ${more}`);
const only = (text: string) => accepted(text, { env: { SECRET: secret } }).config.routes[0]!;

suite('elements', () => {
  test('a delivery is one event, unless something else is said', () => {
    for (const text of [line(''), line('elements: whole')]) assert.equal(only(text).elements, undefined);
  });

  test('each: what is known of the sender, and nothing of its identity changes', () => {
    const route = only(line('elements: each'));
    assert.equal(route.elements, senders.get('line')!.elements);
    assert.equal(route.identity, senders.get('line')!.identity);
    assert.equal(only(line('elements: each, identity: {missing: bodyHash}')).identity.missing, 'bodyHash');
  });

  test('every sender that has several events in a delivery is known by its own name', () => {
    const known = [...senders.values()].filter(({ elements }) => elements).map(({ name }) => name);
    assert.deepEqual(known.toSorted(), [
      'adyen',
      'hubspot',
      'hubspot-v3',
      'line',
      'meta',
      'microsoft-graph',
      'sendgrid',
    ]);
  });

  test('a list of one’s own: it names the delivery as a whole, too', () => {
    const route = only(custom());
    const each = [{ pointer: ['id'] }, { pointer: ['at'] }];
    assert.deepEqual(route.elements, { list: ['items'], each });
    assert.deepEqual(route.identity, {
      parts: [{ from: 'json-list', list: ['items'], each }],
      ...{ bodyHash: false, missing: 'reject', scope: 'route' },
    });
    assert.equal(only(custom(', identity: {missing: forward}')).identity.missing, 'forward');
    assert.deepEqual(only(custom().replace('/items', "''")).elements, { list: [], each });
  });

  test('what does not go together is refused, with the reason', () => {
    const refused = (more: string) => complaints(custom(`, ${more}`))[0]!;
    assert.match(
      refused('inFlight: {policy: accept}'),
      /^routes\[0\]\.inFlight\.policy: found accept, .*; needs wait or reject$/,
    );
    assert.match(refused('fingerprint: refuse'), /^routes\[0\]\.fingerprint: found refuse, .*; needs ignore$/);
    assert.match(
      refused('duplicate: {reply: stored}'),
      /^routes\[0\]\.duplicate\.reply: found stored, .*; needs empty$/,
    );
    assert.match(
      refused('identity: {bodyHash: true}'),
      /^routes\[0\]\.identity: found what names an event, .*needs one of them/,
    );
    assert.match(refused('mode: async'), /^routes\[0\]\.mode: found async, .*; needs sync$/);
  });

  test('each, for a sender of which nothing is known', () => {
    assert.deepEqual(complaints(routes('elements: each')), [
      'routes[0].elements: found each, but it is not known where GitHub has several events in a delivery; needs {at: /list, id: [/pointer]}, or whole',
    ]);
  });

  test('anything else says what is allowed', () => {
    const allowed =
      'needs whole, each, or a mapping of at (a JSON pointer to the list) and id (JSON pointers from its elements)';
    assert.deepEqual(complaints(line('elements: all')), [`routes[0].elements: found "all"; ${allowed}`]);
    assert.deepEqual(complaints(line('elements: {at: /x}')), [`routes[0].elements: found a mapping; ${allowed}`]);
    assert.deepEqual(complaints(line('elements: {at: /x, id: [/a], ids: /b}')), [
      'routes[0].elements.ids: unknown name; did you mean id?',
    ]);
    assert.deepEqual(complaints(line("elements: {at: x, id: ['/a~2']}")), [
      'routes[0].elements.at: found "x"; needs a JSON pointer such as /data/id',
      'routes[0].elements.id[0]: found "/a~2"; needs a JSON pointer such as /data/id',
    ]);
  });

  test('a body is held twice: as it came, and as it is forwarded', () => {
    const limits = (memory: string) => `limits: {body: 1MiB, memory: ${memory}}\n${line('elements: each')}`;
    accepted(limits('2MiB'));
    assert.match(
      complaints(limits('2047KiB'))[0]!,
      /^limits\.memory: found 2047KiB .* elements of route github; needs at least two bodies/,
    );
    accepted(limits('2047KiB').replace('elements: each', 'elements: whole'));
  });
});
