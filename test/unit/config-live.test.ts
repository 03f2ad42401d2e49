/** What a running gateway takes over of a new configuration, and what it says about the rest. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '../../src/config/config.ts';
import { takeOver } from '../../src/config/live.ts';
import { createMemory } from '../../src/core/memory.ts';
import { createSlots } from '../../src/core/slots.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { accepted, nodes, routes, type Around } from './config-source.ts';

const before = `service: a\n${nodes('redis://x:1')}${routes()}`;
const config = (text: string, around?: Around): Config => accepted(text, around).config;

function change(text: string, around?: Around) {
  return takeOver(config(before), config(text, around));
}

test('routes, secrets, limits and log level are taken over', () => {
  const text = `service: a\n${nodes('redis://x:1')}${routes('', 'name: two, path: /two, inFlight: {wait: 1s}')}
limits: {body: 10KiB, memory: 1MiB, reply: 1KiB, headers: 20KiB, inFlight: 7}
upstream: {maxInFlight: 3, maxWaiting: 4, maxWait: 5s, maxProxied: 6}
unmatched: reject
trustedProxies: [10.0.0.0/8]
readiness: {requireQuorum: true}
drain: {delay: 1s, grace: 20s}
log: {level: warn}
`;
  const around = { env: { SECRET: 'another-secret' } };
  const { config: taken, waiting } = change(text, around);
  assert.deepEqual(taken, config(text, around));
  assert.deepEqual(waiting, []);
});

test('what needs a restart stays as it was, and is named as the file names it', () => {
  const { config: taken, waiting } = change(
    `service: b\nlisten: {port: 1}\nadmin: {port: 2}\nupstream: {url: 'http://127.0.0.1:9', timeout: 1s, maxInFlight: 3}
claims: {lockTtl: 30s, unknownHold: 20s}\n${nodes('redis://x:1', 'redis://y:1', 'redis://z:1')}${routes('name: two, path: /two')}`,
  );
  const running = config(before);
  assert.deepEqual(waiting.toSorted(), [
    ...['admin.port', 'claims.lockTtl', 'listen.port', 'redis.nodes', 'service', 'upstream.timeout', 'upstream.url'],
  ]);
  assert.deepEqual({ ...taken, routes: [], upstream: {} }, { ...running, routes: [], upstream: {} });
  assert.deepEqual(taken.upstream, { ...running.upstream, maxInFlight: 3 });
  assert.equal(taken.routes[0]!.name, 'two');
});

test('a password or a certificate of a Redis node needs a restart', () => {
  const withPassword = (value: string) =>
    config(`service: a\nredis: {nodes: [{url: 'redis://x:1', password: {env: REDIS}}]}\n${routes()}`, {
      env: { SECRET: 'test-secret', REDIS: value },
    });
  assert.deepEqual(takeOver(withPassword('one'), withPassword('two')).waiting, ['redis.nodes']);
});

test('memory that was taken before the limit fell is kept, and nothing more is given until it is back', () => {
  const memory = createMemory(100, () => {});
  const [first, second] = [memory.open(), memory.open()];
  assert.equal(first.take(80), true);
  memory.resize(50);
  assert.equal(second.take(1), false);
  first.release();
  assert.equal(second.take(50), true);
  memory.resize(100);
  assert.equal(second.take(50), true);
});

test('more slots serve those who wait, fewer are given as they come back', async () => {
  const slots = createSlots({ maxInFlight: 1, maxWaiting: 2, maxWaitMs: 1_000 }, new ManualClock());
  assert.equal(slots.take(), 'taken');
  const waiting = [1, 2].map(async () => await slots.take());
  assert.equal(slots.take(), 'waiting');
  slots.resize({ maxInFlight: 3, maxWaiting: 2, maxWaitMs: 1_000 });
  assert.deepEqual(await Promise.all(waiting), ['taken', 'taken']);
  slots.resize({ maxInFlight: 1, maxWaiting: 0, maxWaitMs: 1_000 });
  slots.give();
  slots.give();
  assert.equal(slots.take(), 'waiting', 'one is still taken');
  slots.give();
  assert.equal(slots.take(), 'taken');
});
