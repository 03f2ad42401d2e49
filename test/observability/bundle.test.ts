import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from '../../build.ts';
import { systemClock } from '../../src/clock.ts';
import { startGateway } from '../../src/demo/gateway.ts';
import { scriptedApplication } from '../support/application.ts';
import { post } from '../support/cluster.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import { github } from '../support/deliveries.ts';
import { startCollector } from './collector.ts';

test('the bundle exports traces, away from node_modules', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'hookonce-traced-build-'));
  t.after(() => rm(folder, { recursive: true }));
  await build(join(folder, 'dist'));
  await using collector = await startCollector();
  await using application = await scriptedApplication();
  const config = gatewayConfig(application.url, [], { top: { tracing: { otlp: collector.url } } });
  const program = { node: process.execPath, entry: join(folder, 'dist/main.js') };
  await using gateway = await startGateway(program, systemClock, { config, files: secretFiles });
  assert.equal((await post(gateway, '/github', github('bundled'))).status, 200);
  assert.deepEqual(await gateway.terminate(), { code: 0, signal: null });
  assert.deepEqual(collector.spans.map(({ name }) => name).sort(), ['claim', 'complete', 'forward', 'receive']);
});
