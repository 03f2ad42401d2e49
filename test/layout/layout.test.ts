import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { RULES } from './rules.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

for (const [name, complaints] of Object.entries(RULES)) {
  test(`layout: ${name}`, () => assert.deepEqual(complaints(root), []));
}
