import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { startGateway, type Gateway } from '../../src/demo/gateway.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { header } from '../../src/core/delivery.ts';
import { createLog } from '../../src/events/log.ts';
import { answer, reset, scriptedApplication } from '../support/application.ts';
import { post, votersUp } from '../support/cluster.ts';
import { gatewayConfig, secretFiles, secrets } from '../support/config.ts';
import { custom, github, stripe } from '../support/deliveries.ts';
import { program } from '../support/program.ts';
import { startCollector } from './collector.ts';

const redisPassword = 'redis-password-not-to-be-seen';
const markers = ['body-not-to-be-seen', 'header-not-to-be-seen', 'query-not-to-be-seen', 'reply-not-to-be-seen'];

/** Deliveries of every kind, each with a marker in whatever a log line could have been made of. */
async function everything(gateway: Gateway): Promise<void> {
  const body = JSON.stringify({ id: 'evt', text: markers[0] });
  const marked = ({ headers, body: bytes }: ReturnType<typeof github>) => ({
    headers: [...headers, 'Authorization', `Bearer ${markers[1]}`, 'Cookie', markers[1]!],
    body: bytes,
  });
  for (const [path, message] of [
    ['/github', github('once', body)],
    ['/github', github('once', body)],
    ['/github', github('broken', body)],
    ['/github', github('fails', body)],
    ['/github', github('wrong', body, 'some-other-secret')],
    ['/stripe', stripe(body)],
    ['/stripe', stripe(body, 3_600_000)],
    ['/custom/x', custom(body)],
    ['/custom/x', custom(`{"text": "${markers[0]}", not json`)],
    ['/elsewhere', github('proxied', body)],
  ] as const)
    await post(gateway, `${path}?token=${markers[2]}`, marked(message));
  for (const request of ['explain', 'forget'])
    await exchange(`${gateway.adminUrl}/-/${request}/github?id=once`, {
      method: request === 'forget' ? 'POST' : 'GET',
      headers: ['Authorization', `Bearer ${secrets.admin}`],
    });
}

test('no secret, no body, no header and no whole key is in any line, at any level', async () => {
  await using redis = await startRedisServer({ args: ['--requirepass', redisPassword] });
  await using wrong = await startRedisServer({ args: ['--requirepass', 'another'] });
  await using collector = await startCollector();
  await using application = await scriptedApplication();
  application.script('broken', reset);
  application.script('fails', answer(500, { body: markers[3]! }));
  const files = { ...secretFiles, 'redis.secret': redisPassword };
  const settings = { admin: { token: { file: './admin.secret' } }, log: { level: 'trace' } };
  const config = gatewayConfig(application.url, [], settings);
  const password = { file: './redis.secret' };
  const nodes = [redis, wrong, { url: 'redis://127.0.0.1:1' }].map(({ url }) => ({ url, password }));
  const whole = { ...config, redis: { nodes }, tracing: { otlp: collector.url } };
  await using gateway = await startGateway(program, systemClock, { config: whole, files });
  // Two of three do not let the gateway in: first nothing can be claimed, then, with one node, everything.
  await everything(gateway);
  let lines = gateway.child.lines;
  await gateway.restart({ config: { ...whole, redis: { nodes: nodes.slice(0, 1) } }, files });
  await votersUp(gateway, 1);
  await everything(gateway);
  await gateway.terminate();
  lines = [...lines, ...gateway.child.lines];

  const keys = application.visits
    .map(({ headers }) => header(headers, 'hookonce-key'))
    .filter((key) => key !== undefined);
  assert.ok(keys.length > 3);
  assert.ok(lines.length > 20);
  const logged = lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as { level: string });
  const levels = new Set(logged.map(({ level }) => level));
  for (const level of ['debug', 'info', 'warn']) assert.ok(levels.has(level), level);
  for (const hidden of [...Object.values(secrets), redisPassword, 'some-other-secret', ...markers, ...keys])
    for (const line of lines) assert.ok(!line.includes(hidden), `${hidden} in ${line}`);
  const spans = JSON.stringify(collector.spans, (_, value: unknown) => (typeof value === 'bigint' ? 0 : value));
  for (const hidden of [...Object.values(secrets), redisPassword, ...markers, ...keys])
    assert.ok(!spans.includes(hidden), `${hidden} in a span`);
});

test('of an error a line has what it is and where it was thrown, and nothing that hangs on it', () => {
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => void lines.push(line) });
  let parser: unknown;
  try {
    JSON.parse(`{"card": body-not-to-be-seen}`);
  } catch (error) {
    parser = error;
  }
  const error = Object.assign(new Error('failed', { cause: parser }), {
    code: 'ECODE',
    command: { name: 'auth', args: ['password-not-to-be-seen'] },
  });
  log.warn({ err: error }, 'something');
  const { err } = JSON.parse(lines[0]!) as { err: Record<string, unknown> };
  assert.deepEqual(Object.keys(err), ['type', 'message', 'code', 'stack', 'cause']);
  assert.match(String(err['stack']), /logs\.test\.ts/);
  assert.ok(!lines[0]!.includes('not-to-be-seen'));
});
