/** What is odd about the package `redlock` as it is published, and what is done about it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const json = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'));

test('pinned exactly: a caret would take another publish, since beta2 sorts above beta.2', () => {
  assert.equal(json('package.json').dependencies.redlock, '5.0.0-beta.2');
  assert.equal(json('package-lock.json').packages['node_modules/redlock'].version, '5.0.0-beta.2');
  assert.equal(json('node_modules/redlock/package.json').version.replace(/^v/, ''), '5.0.0-beta.2');
});

test('its exports name no types: tsconfig says where they are', () => {
  assert.deepEqual(Object.keys(json('node_modules/redlock/package.json').exports['.']), ['import', 'require']);
  const path = json('tsconfig.json').compilerOptions.paths.redlock[0];
  assert.match(readFileSync(join(root, path), 'utf8'), /export default class Redlock/);
});

test('one file of ours imports it, and none uses using()', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const sources = new Map(files.map((file) => [file, readFileSync(join(root, 'src', file), 'utf8')]));
  const importers = [...sources].filter(([, text]) => /from 'redlock'/.test(text)).map(([file]) => file);
  assert.deepEqual(importers, ['redis/ballots.ts']);
  assert.ok([...sources.values()].every((text) => !/\.using\(/.test(text)));
});
