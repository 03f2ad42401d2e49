import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { reference } from '../../docs/generate-configuration.ts';
import { LIVE } from '../../src/config/live.ts';

const text = reference();

test('docs/configuration.md is what the schema says: node docs/generate-configuration.ts writes it', () => {
  assert.equal(readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8'), text);
});

test('the reference says of each setting that a running gateway takes over that it is live', () => {
  const settings = new Set([...text.matchAll(/^\| `([\w.]+)` .*\*live\* \|$/gm)].map(([, name]) => name));
  for (const name of LIVE) {
    const [section, ...rest] = name.split('.');
    const shown = rest.length > 0 ? rest.join('.') : section;
    assert.ok(settings.has(shown) || new RegExp(`## ${shown}\\n\\n.* All of it is \\*live\\*`).test(text), name);
  }
});
