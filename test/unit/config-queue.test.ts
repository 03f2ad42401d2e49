/** The queue in the configuration, and the routes that need it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { takeOver } from '../../src/config/live.ts';
import { accepted, complaints, routes } from './config-source.ts';

const queue = (more: string): string => `queue: {${more}}\n${routes('mode: async')}`;
const target = (more: string, around = {}) => accepted(queue(more), around).config.queue!.target;

test('a URL says where it is: Redis or PostgreSQL, plain or with TLS', () => {
  assert.deepEqual(target('url: "redis://queue"'), {
    ...{ kind: 'redis', name: 'queue:6379', host: 'queue', port: 6379, database: '', tls: undefined },
    ...{ username: undefined, password: undefined },
  });
  assert.deepEqual(target('url: "redis://[::1]:7000/3"').host, '::1');
  assert.deepEqual(target('url: "redis://[::1]:7000/3"').database, '3');
  assert.ok(target('url: "rediss://queue"').tls);
  const { kind, port, database, tls } = target('url: "postgres://db/orders"');
  assert.deepEqual([kind, port, database, tls], ['postgres', 5432, 'orders', undefined]);
  assert.ok(target('url: "postgresql://db:1/orders?sslmode=verify-full"').tls);
  assert.ok(target('url: "postgres://db/orders", tls: {}').tls);
});

test('a login comes beside the URL, or with the whole URL by reference', () => {
  const beside = target('url: "redis://queue", username: me, password: {env: SECRET}', {
    env: { SECRET: 'pa ss'.replace(' ', '') },
  });
  assert.deepEqual([beside.username, beside.password], ['me', 'pass']);
  const env = { SECRET: 's3cr3t', URL: 'postgres://me:p%40ss@db:5433/orders' };
  const whole = target('url: {env: URL}', { env });
  assert.deepEqual(
    [whole.host, whole.port, whole.username, whole.password, whole.database],
    ['db', 5433, 'me', 'p@ss', 'orders'],
  );
});

test('what is no fit URL is refused, and no secret is shown', () => {
  for (const [url, why] of [
    ['"queue:6379"', /needs a URL such as redis/],
    ['"http://queue"', /needs a URL such as redis/],
    ['"redis://me:s3cr3t@queue"', /without user and password/],
    ['"redis://queue/orders"', /number of a Redis database/],
    ['"postgres://db"', /name of a database/],
    ['"postgres://db/orders?host=elsewhere"', /without query but sslmode/],
    ['"redis://queue?x=1"', /without query/],
    ['7', /needs a URL such as redis/],
    ['{fil: /x}', /did you mean file/],
  ] as const) {
    const said = complaints(queue(`url: ${url}`)).join('\n');
    assert.match(said, /^queue\.url/m, url);
    assert.match(said, why, url);
    assert.doesNotMatch(said, /s3cr3t/);
  }
  const said = complaints(queue('url: {env: URL}'), {
    env: { SECRET: 'x3cr3t-of-the-tests', URL: 'ftp://me:s3cr3t@db/x' },
  });
  assert.match(said.join(), /environment variable URL is not fit/);
  assert.doesNotMatch(said.join(), /s3cr3t@|me:/);
});

test('TLS settings need a URL with TLS, and cert and key each other', () => {
  assert.match(complaints(queue('url: "redis://queue", tls: {}')).join(), /beside a redis:\/\/ url/);
  assert.match(complaints(queue('url: "rediss://queue", tls: {cert: /c.pem}')).join(), /cert without key/);
});

test('defaults, and a first pause that exceeds the longest', () => {
  const { target: _, ...rest } = accepted(queue('url: "redis://queue"')).config.queue!;
  assert.deepEqual(rest, {
    ...{ attempts: 20, concurrency: 16, nonRetryable: [], page: false, timeoutMs: 1000 },
    ...{ backoff: { firstMs: 1000, maxMs: 3_600_000 }, deadRetentionMs: 30 * 86_400_000 },
  });
  assert.match(complaints(queue('url: "redis://q", backoff: {first: 2h, max: 1h}')).join(), /^queue\.backoff\.max/);
  assert.match(complaints(queue('url: "redis://q", atempts: 3')).join(), /did you mean attempts/);
});

test('a route in async mode needs a queue, and cannot only observe', () => {
  assert.deepEqual(complaints(routes('mode: async')), [
    'queue: found nothing, but route github has mode: async; needs the url of the queue',
  ]);
  assert.match(
    complaints(queue('url: "redis://q"').replace('mode: async', 'mode: async, observe: true')).join(),
    /^routes\[0\]\.observe: .* needs mode: sync/,
  );
});

test('a queue without the name of a service is shared with whoever has none either: a warning', () => {
  const said = (more: string): string => accepted(`${more}${queue('url: "redis://q"')}`).warnings.join('\n');
  assert.match(said(''), /^service: none, and there is a queue: /m);
  assert.doesNotMatch(said('service: payments/orders\n'), /^service:/m);
});

test('replies cannot be stored in async mode: a warning', () => {
  const text = queue('url: "redis://q"').replace('mode: async', 'mode: async, duplicate: {reply: stored}');
  assert.match(accepted(text).warnings.join('\n'), /^routes\[0\]\.duplicate\.reply: stored, but in async mode/m);
});

test('accepted is answered 202, or what the sender alone takes for success', () => {
  const statusOf = (more: string): number =>
    accepted(`queue: {url: "redis://q"}\n${routes(`mode: async, ${more}`)}`).config.routes[0]!.async!.acceptedStatus;
  assert.equal(statusOf('sender: github'), 202);
  assert.equal(statusOf('sender: acme'), 204);
  assert.equal(statusOf('sender: mailgun'), 200);
  assert.equal(statusOf('sender: github, duplicate: {status: 201}'), 201);
  assert.equal(accepted(routes()).config.routes[0]!.async, undefined);
});

test('more jobs at a time than the application takes: a warning', () => {
  const { warnings } = accepted(`upstream: {maxInFlight: 8}\n${queue('url: "redis://q"')}`);
  assert.match(warnings.join('\n'), /queue\.concurrency: 16 is more than upstream\.maxInFlight \(8\)/);
});

test('jobs that would not fit into the container: a warning', () => {
  const warnings = (text: string): string =>
    accepted(text, { env: { SECRET: 'x3cr3t-of-the-tests' }, memoryLimit: 128 * 1024 ** 2 }).warnings.join('\n');
  assert.doesNotMatch(warnings(queue('url: "redis://q"')), /queue\.concurrency/);
  assert.match(
    warnings(queue('url: "redis://q", concurrency: 32')),
    /32 jobs with bodies of 1MiB .* 128MiB of the container's 128MiB/,
  );
});

test('a running gateway without a queue keeps a route in sync mode until it starts anew', () => {
  const running = accepted(routes()).config;
  const next = accepted(queue('url: "redis://q"')).config;
  const { config, waiting } = takeOver(running, next);
  assert.equal(config.routes[0]!.async, undefined);
  assert.ok(waiting.includes('queue') && waiting.includes('routes'), waiting.join());
  const moved = takeOver(next, accepted(queue('url: "redis://other"')).config);
  assert.deepEqual(moved.waiting, ['queue.url']);
});
