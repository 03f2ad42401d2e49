/** The ledger from the bundle, away from node_modules: its driver is loaded by `import()`, and is there. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { build } from '../../build.ts';
import { systemClock as clock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { startGateway } from '../../src/demo/gateway.ts';
import { scriptedApplication } from '../support/application.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';
import { startPostgres } from '../support/postgres.ts';

test('the bundle has the ledger', async () => {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'hookonce-bundle-'));
  stack.defer(async () => await rm(folder, { recursive: true }));
  await build(join(folder, 'dist'));
  const application = stack.use(await scriptedApplication());
  const { url } = stack.use(await startPostgres());
  const ledger = { url: { file: './ledger.secret' }, timeout: '300ms' };
  const config = gatewayConfig(application.url, [], { top: { ledger } });
  const program = { node: process.execPath, entry: join(folder, 'dist/main.js') };
  const files = { ...secretFiles, 'ledger.secret': url };
  const gateway = stack.use(await startGateway(program, clock, { config, files }));
  const deliver = async () => await exchange(`${gateway.url}/github`, { method: 'POST', ...github('bundled') });
  assert.equal((await deliver()).status, 200);
  await gateway.restart();
  assert.equal(outcome(await deliver()), 'duplicate', 'its memory is the ledger alone');
  assert.equal(application.visits.length, 1);
  assert.equal((await gateway.terminate()).code, 0);
});
