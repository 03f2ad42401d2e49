/** Async mode from the bundle, away from node_modules: what is loaded by `import()` is there, and so is the page. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { build } from '../../build.ts';
import { systemClock as clock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { startGateway } from '../../src/demo/gateway.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import { scriptedApplication } from '../support/application.ts';
import { queueUp } from '../support/async.ts';
import { gatewayConfig, routes, secretFiles } from '../support/config.ts';
import { github } from '../support/deliveries.ts';
import { startPostgres } from '../support/postgres.ts';

suite('the bundle', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hookonce-bundle-'));
    await build(join(folder, 'dist'));
  });

  after(async () => await rm(folder, { recursive: true }));

  for (const store of ['Redis', 'PostgreSQL'] as const) {
    test(`has the queue on ${store}, and its page`, async () => {
      await using stack = new AsyncDisposableStack();
      const application = stack.use(await scriptedApplication());
      const { url } = stack.use(
        store === 'Redis' ? await startRedisServer({ appendonly: 'always' }) : await startPostgres(),
      );
      const queue = {
        url: url.replace('hookonce@', ''),
        ...(url.includes('@') && { username: 'hookonce' }),
        page: true,
      };
      const config = gatewayConfig(application.url, [], {
        routes: routes.map((route) => ({ ...route, mode: 'async' })),
        top: { queue },
      });
      const program = { node: process.execPath, entry: join(folder, 'dist/main.js') };
      const gateway = stack.use(await startGateway(program, clock, { config, files: secretFiles }));
      await queueUp(gateway);
      assert.equal((await exchange(`${gateway.url}/github`, { method: 'POST', ...github('bundled') })).status, 202);
      await until(clock, 'the forward', async () => (application.of('bundled').length === 1 ? true : undefined));
      const page = await exchange(`${gateway.adminUrl}/-/queue/`);
      assert.equal(page.status, 200);
      const script = /src="(static\/js\/main[^"]+)"/.exec(page.body.toString())?.[1];
      assert.equal((await exchange(`${gateway.adminUrl}/-/queue/${script}`)).status, 200);
      assert.equal((await exchange(`${gateway.adminUrl}/-/queue/api/queues`)).status, 200);
    });
  }
});
