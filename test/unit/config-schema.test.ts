/** The JSON Schema says what the gateway says, as far as a schema can. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configJsonSchema, type JsonSchema } from '../../src/config/json-schema.ts';
import { parseDuration, parseSize } from '../../src/config/units.ts';
import { senders } from '../../src/senders/index.ts';
import { accepted, routes } from './config-source.ts';

const schema = configJsonSchema(senders.keys());

/** Every setting in it, by its path. */
function settings(within: JsonSchema, path = ''): [string, JsonSchema][] {
  const inside = Object.entries(within.properties ?? {}) as [string, JsonSchema][];
  const items = within.items as JsonSchema | undefined;
  return [
    ...inside.flatMap(([name, one]): [string, JsonSchema][] => [
      [`${path}${name}`, one],
      ...settings(one, `${path}${name}.`),
    ]),
    ...(items === undefined ? [] : settings(items, path.replace(/\.$/, '[].'))),
  ];
}

test('every setting is described, and every mapping is closed', () => {
  assert.equal(schema['$schema'], 'http://json-schema.org/draft-07/schema#');
  for (const [path, { description, type, additionalProperties }] of settings(schema)) {
    assert.ok(description, path);
    if (type === 'object') assert.equal(additionalProperties, false, path);
  }
});

test('defaults and examples are values that the setting takes', () => {
  for (const [path, { default: given, examples = [], pattern }] of settings(schema)) {
    if (pattern === undefined) continue;
    for (const value of [given, ...examples].filter((one) => typeof one === 'string'))
      assert.match(value, new RegExp(pattern, 'u'), path);
  }
});

test('durations and sizes are written as the gateway reads them', () => {
  const found = Object.fromEntries(settings(schema));
  const [duration, size] = ['upstream.timeout', 'limits.body'].map((path) => new RegExp(found[path]!.pattern!));
  for (const text of ['15s', '1.5h', '7d', '300ms', '15', '15 s', 's', '15S', '1w'])
    assert.equal(duration!.test(text), parseDuration(text) !== undefined, text);
  for (const text of ['1MiB', '512B', '1.5GiB', '1MB', '1', '1mib'])
    assert.equal(size!.test(text), parseSize(text) !== undefined, text);
});

test('senders are offered by name, and a reference is one of file and env', () => {
  const found = Object.fromEntries(settings(schema));
  assert.deepEqual(found['routes[].sender']!.enum, [...senders.keys()]);
  assert.deepEqual((found['routes[].secrets']!.items as JsonSchema).oneOf, [
    { required: ['file'] },
    { required: ['env'] },
  ]);
});

test('an observing route is said to stop nothing', () => {
  const { config, warnings } = accepted(routes('observe: true'));
  assert.equal(config.routes[0]!.observe, true);
  assert.ok(warnings.some((line) => line.startsWith('routes[0].observe: nothing is stopped')));
});

test('secrets are called by the last part of their reference, by all of it where two are called the same', () => {
  const files = { '/a/current': 'one', '/b/current': 'two', './stripe': 'three' };
  const text = routes('secrets: [{file: /a/current}, {file: /b/current}, {file: ./stripe}, {env: SECRET}]');
  const { config } = accepted(text, { files, env: { SECRET: 'four' } });
  assert.deepEqual(config.routes[0]!.secretNames, ['/a/current', '/b/current', 'stripe', 'SECRET']);
});
