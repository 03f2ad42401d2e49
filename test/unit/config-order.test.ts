/** The order of a resource's events in the configuration. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accepted, complaints, routes } from './config-source.ts';

const ordered = (text: string, more = '') => routes(`${more}ordering: ${text}`);
const of = (text: string, more = '') => accepted(ordered(text, more)).config.routes[0]?.ordering;

test('off unless it is asked for', () => {
  assert.equal(accepted(routes()).config.routes[0]?.ordering, undefined);
});

test('resource and version as they are written', () => {
  assert.deepEqual(of('{resource: {json: /data/id}, version: {header: x-version, type: number}, onStale: mark}'), {
    resource: [{ from: 'json', pointer: ['data', 'id'] }],
    version: { from: 'header', names: ['x-version'] },
    ...{ type: 'number', onStale: 'mark' },
  });
});

test('what is known of the sender, and what is written of it instead', () => {
  const known = of('{}', 'sender: shopify, ');
  assert.equal(known?.type, 'timestamp');
  assert.equal(known.onStale, 'drop');
  assert.equal(known.resource.length, 2, 'the shop is part of the resource');
  const own = of('{version: {json: /revision, type: number}}', 'sender: shopify, ');
  assert.deepEqual([own?.type, own?.resource], ['number', known.resource]);
});

test('what is missing, or does not go together, is said', () => {
  assert.match(
    complaints(ordered('{}', 'sender: stripe, ')).join(),
    /routes\[0\].ordering: found no resource; needs resource and version/,
  );
  assert.match(complaints(ordered('{resource: {json: /id}}', 'sender: stripe, ')).join(), /found no version/);
  assert.match(
    complaints(ordered('{resource: {}, version: {json: /v, type: number}}')).join(),
    /exactly one of header, json and form/,
  );
  assert.match(complaints(ordered('{resource: {json: /id}, version: {json: /v}}')).join(), /ordering.version.type/);
  const both = 'sender: hubspot-v3, publicUrl: https://a, elements: each, ';
  assert.match(
    complaints(ordered('{resource: {json: /id}, version: {json: /v, type: number}}', both)).join(),
    /found with elements/,
  );
});
