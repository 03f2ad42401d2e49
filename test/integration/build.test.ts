import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from '../../build.ts';

test('the bundle runs by itself, away from node_modules', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'hookonce-build-'));
  t.after(() => rm(folder, { recursive: true }));
  const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'));

  await build(join(folder, 'dist'));
  const run = spawnSync(process.execPath, ['dist/main.js', 'version'], { cwd: folder, encoding: 'utf8' });

  assert.deepEqual([run.status, run.stderr], [0, '']);
  assert.ok(run.stdout.includes(version), run.stdout);
});
