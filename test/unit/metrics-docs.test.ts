import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { described, reference } from '../../docs/generate-metrics.ts';

test('docs/metrics.md is what the code says: node docs/generate-metrics.ts writes it', async () => {
  const written = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  assert.equal(written, await reference());
});

test('every metric says what it is in a sentence, and its label names are few', async () => {
  for (const { name, help, labels } of await described()) {
    if (!name.startsWith('hookonce_')) continue;
    assert.match(help, /^[A-Z0-9].*\.$/, name);
    assert.ok(labels.length <= 2, name);
  }
});
