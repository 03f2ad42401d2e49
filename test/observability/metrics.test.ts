import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { exchange } from '../../src/demo/exchange.ts';
import { answer, scriptedApplication } from '../support/application.ts';
import { post } from '../support/cluster.ts';
import { github } from '../support/deliveries.ts';
import { startSolo } from '../support/solo.ts';

const seriesOf = (page: string): string[] =>
  page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.slice(0, line.lastIndexOf(' ')));

test('promtool finds nothing to say about the metrics, before traffic and after', async () => {
  await using application = await scriptedApplication();
  await using gateway = await startSolo(application.url);
  const check = async () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], {
      input: await gateway.metrics(),
      encoding: 'utf8',
    });
    assert.deepEqual({ status, said: `${stdout}${stderr}` }, { status: 0, said: '' });
  };
  await check();
  application.script('fails', answer(500));
  for (const id of ['works', 'works', 'fails']) await post(gateway, '/github', github(id));
  await post(gateway, '/github', { body: Buffer.from('{}') });
  await exchange(`${gateway.url}/elsewhere`);
  await check();
});

test('B115: 2,000 odd paths, odd methods and 500 ids add no series but those of the first of their kind', async () => {
  await using application = await scriptedApplication();
  await using gateway = await startSolo(application.url);
  const inBatches = async (count: number, send: (n: number) => Promise<unknown>): Promise<void> => {
    for (let n = 0; n < count; n += 50)
      await Promise.all(Array.from({ length: Math.min(50, count - n) }, (_, i) => send(n + i)));
  };
  const before = new Set(seriesOf(await gateway.metrics()));
  await inBatches(2_000, async (n) => {
    const method = ['GET', 'POST', 'PROPFIND', 'FOO'][n % 4]!;
    await exchange(`${gateway.url}${n % 10 === 0 ? '/.env' : `/x${n}`}`, { method }).catch(() => undefined);
  });
  await inBatches(500, async (n) => {
    const { headers, body } = github(`id-${n}`);
    await post(gateway, '/github', { headers: [...headers, 'X-Forwarded-Host', `host-${n}.example`], body });
  });
  const page = await gateway.metrics();
  const added = seriesOf(page).filter((series) => !before.has(series));
  const kinds = new Set(
    added.map((series) => series.replace(/le="[^"]*",?/, '').replace(/_(bucket|sum|count)\{/, '{')),
  );
  assert.ok(kinds.size < 20, [...kinds].join('\n'));
  for (const word of ['/x', '.env', 'PROPFIND', 'id-', 'host-']) assert.ok(!page.includes(word), word);
  assert.ok(page.length < 100 * 1024, `${page.length} bytes`);
});

test('OpenMetrics on request: the trace behind a bucket is its exemplar', async () => {
  await using application = await scriptedApplication();
  await using gateway = await startSolo(application.url, { top: { metrics: { openMetrics: true } } });
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
  const { headers, body } = github('exemplified');
  await post(gateway, '/github', { headers: [...headers, 'traceparent', `00-${traceId}-00f067aa0ba902b7-01`], body });
  await post(gateway, '/github', github('without-a-trace'));
  const { headers: told, body: bytes } = await exchange(`${gateway.adminUrl}/metrics`);
  const page = bytes.toString();
  assert.match(told.join(), /application\/openmetrics-text; version=1\.0\.0/);
  assert.match(
    page,
    new RegExp(
      `hookonce_delivery_duration_seconds_bucket\\{.*route="github".*\\} \\d+ # \\{trace_id="${traceId}"\\} [\\d.]+ [\\d.]+`,
    ),
  );
  assert.match(page, new RegExp(`hookonce_upstream_duration_seconds_bucket.*trace_id="${traceId}"`));
  assert.match(page, /\nhookonce_deliveries_total\{.*outcome="delivered"\} 2\n/);
  assert.ok(page.endsWith('# EOF\n'));
});
