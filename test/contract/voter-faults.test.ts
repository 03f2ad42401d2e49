/** One voter before a server that is silent, gone, slow or refusing: every question is answered, and it comes back by itself. */
import assert from 'node:assert/strict';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { suite, test } from 'node:test';
import { Redis } from 'ioredis';
import { systemClock as clock } from '../../src/clock.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import type { Item } from '../../src/redis/items.ts';
import { RedisLink, type RedisNode } from '../../src/redis/redis-link.ts';
import { Voter } from '../../src/redis/voter.ts';
import { writtenToFile } from '../support/keys.ts';
import { recordedEvents, type RecordedEvents } from '../support/recorded-events.ts';
import { freshKey } from '../support/quorum.ts';
import { say } from '../support/raw-voter.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const timeoutMs = 250;
const claim = (): Item & { op: 'claim' } => ({
  op: 'claim',
  id: freshKey().id,
  token: 'A',
  lockMs: 20_000,
  recordMs: 60_000,
});

interface Rig extends AsyncDisposable {
  readonly voter: Voter;
  readonly events: RecordedEvents;
  /** Resolves when the voter can be asked. */
  eligible(): Promise<void>;
  errors(): Record<string, number>;
}

function rig(port: number, node: Partial<RedisNode> = {}): Rig {
  const events = recordedEvents();
  const access = { host: '127.0.0.1', port, username: undefined, password: undefined, tls: undefined };
  const link = new RedisLink({ ...access, prefix: 'ho', timeoutMs, ...node });
  let nonces = 0;
  const options = {
    name: 'lock-0',
    timeoutMs: node.timeoutMs ?? timeoutMs,
    lifeMs: 1_000,
    lanes: 'one',
    nonce: () => `n${(nonces += 1)}`,
  } as const;
  const voter = new Voter(link, options, clock, events);
  return {
    ...{ voter, events },
    eligible: async () => void (await events.until(() => voter.eligible || undefined)),
    errors: () => {
      const counts: Record<string, number> = {};
      for (const [, why] of events.of('voterError')) counts[why] = (counts[why] ?? 0) + 1;
      return counts;
    },
    [Symbol.asyncDispose]: async () => await voter[Symbol.asyncDispose](),
  };
}

/** What a question costs in the end: never much more than the deadline, with room for a busy machine. */
async function timed<T>(ask: Promise<T>, mostMs: number): Promise<T> {
  const begun = clock.now();
  const answer = await ask;
  const ms = clock.now() - begun;
  assert.ok(ms <= mostMs, `${ms} ms`);
  return answer;
}

async function connectionsSeen(redis: Redis): Promise<number> {
  return Number(/total_connections_received:(\d+)/.exec(await redis.info('stats'))![1]);
}

async function onServer<T>(server: RedisServer, run: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(server.url);
  try {
    return await run(redis);
  } finally {
    redis.disconnect();
  }
}

suite('a voter in trouble', { concurrency: true }, () => {
  test('B45: frozen: answered at the deadline, skipped after three silences, back after the thaw on the same connection', async () => {
    await using server = await startRedisServer();
    await using one = rig(server.port);
    await one.eligible();
    const before = await onServer(server, connectionsSeen);
    server.freeze();
    const begun = clock.now();
    for (let silence = 1; silence <= 3; silence += 1) {
      assert.equal(say(await one.voter.ask(claim())), 'error timeout');
      assert.ok(clock.now() - begun >= silence * timeoutMs - 1);
      assert.equal(one.voter.eligible, silence < 3);
    }
    assert.equal(say(await timed(one.voter.ask(claim()), timeoutMs / 2)), 'error skipped');
    assert.deepEqual(one.events.of('voterState').at(-1)?.slice(0, 2), ['lock-0', 'down']);
    assert.deepEqual(one.errors(), { timeout: 3, skipped: 1 });
    server.thaw();
    await one.eligible();
    assert.match(say(await one.voter.ask(claim())), /^ok/);
    assert.equal(await onServer(server, connectionsSeen), before + 1, 'only the connection that counts them is new');
  });

  test('many questions at once to a frozen server cost one deadline together', async () => {
    await using server = await startRedisServer();
    await using one = rig(server.port);
    await one.eligible();
    server.freeze();
    const asked: Promise<string>[] = [];
    for (let turn = 0; turn < 20; turn += 1) {
      asked.push(...Array.from({ length: 30 }, async () => say(await one.voter.ask(claim()))));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const answers = await timed(Promise.all(asked), timeoutMs + 1_000);
    assert.ok(answers.includes('error timeout'));
    assert.ok(answers.every((answer) => answer === 'error timeout' || answer === 'error skipped'));
    assert.equal(one.voter.eligible, false);
    server.thaw();
  });

  test('killed: refused at once; started again it is back by itself, on hold', async () => {
    await using server = await startRedisServer({ appendonly: 'everysec' });
    await using one = rig(server.port);
    await one.eligible();
    await one.voter.trust();
    const { id } = freshKey();
    const reply = await one.voter.ask({ ...claim(), id });
    assert.ok(one.voter.counts(reply, id));
    await writtenToFile(server);
    await server.kill();
    await one.events.until(() => (one.voter.eligible ? undefined : true));
    assert.equal(say(await timed(one.voter.ask(claim()), timeoutMs / 2)), 'error down');
    await server.start();
    await one.eligible();
    assert.equal(one.voter.hold, 'locks');
    assert.deepEqual(one.events.of('voterState').at(-1)?.slice(0, 2), ['lock-0', 'held']);
    assert.equal(say(await one.voter.ask({ ...claim(), id, token: 'B' })), 'held A floor 0');
    assert.ok(!one.voter.counts(reply, id), 'what it granted before does not count any more');
    await until(clock, 'the hold to be over', async () => {
      await one.voter.ask({ op: 'peek', id });
      return one.voter.hold === '' || undefined;
    });
    assert.deepEqual(one.events.of('voterState').at(-1)?.slice(0, 2), ['lock-0', 'up']);
  });

  test('killed with a question under way: answered when the connection breaks, not at the deadline', async () => {
    await using server = await startRedisServer();
    await using one = rig(server.port, { timeoutMs: 20_000 });
    await one.eligible();
    server.freeze();
    const asked = one.voter.ask(claim());
    await new Promise((resolve) => setImmediate(resolve));
    await server.kill();
    assert.equal(say(await timed(asked, 5_000)), 'error disconnected');
  });

  test('B44: a server that takes connections and says nothing never makes anybody wait', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => void sockets.add(socket.on('error', () => {})));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    await using one = rig((silent.address() as AddressInfo).port);
    assert.equal(say(await timed(one.voter.ask(claim()), timeoutMs)), 'error down');
    await one.events.until(() => one.errors()['timeout']);
    assert.equal(say(await one.voter.ask(claim())), 'error down');
    await closed(silent, sockets);
  });

  for (const host of ['127.0.0.1', 'localhost']) {
    test(`B44: TLS spoken to a server without it, at ${host}: told, tried again, and nobody waits`, async () => {
      await using server = await startRedisServer();
      await using one = rig(server.port, { host, tls: { ca: undefined, cert: undefined, key: undefined } });
      assert.equal(say(await timed(one.voter.ask(claim()), timeoutMs)), 'error down');
      await one.events.until(() =>
        (one.errors()['tls'] ?? 0) + (one.errors()['timeout'] ?? 0) >= 2 ? true : undefined,
      );
      assert.ok(!one.voter.eligible);
    });
  }

  test('B61: a deadline below the latency: no question hangs, and fewer than five connections a second', async () => {
    await using server = await startRedisServer();
    await using redis = disposing(new Redis(server.url));
    await using proxy = await startTcpProxy(clock, server.port);
    proxy.delay(30);
    const before = await connectionsSeen(redis.it);
    const begun = clock.now();
    await using one = rig(proxy.port, { timeoutMs: 20 });
    await until(clock, 'the sixth connection', async () =>
      (await connectionsSeen(redis.it)) >= before + 6 ? true : undefined,
    );
    assert.ok(clock.now() - begun > 1_200, `six connections within ${clock.now() - begun} ms`);
    assert.equal(say(await timed(one.voter.ask(claim()), 100)), 'error down');
    const own = await redis.it.client('LIST');
    assert.ok(String(own).trim().split('\n').length < 5);
    proxy.heal();
    await one.eligible();
  });

  test('B61: a voter that becomes slower than the deadline is skipped, and keeps its connection', async () => {
    await using server = await startRedisServer();
    await using proxy = await startTcpProxy(clock, server.port);
    await using one = rig(proxy.port);
    await one.eligible();
    const before = await onServer(server, connectionsSeen);
    proxy.delay(timeoutMs + 100);
    await Promise.all([one.voter.ask(claim()), one.voter.ask(claim())]);
    while (one.voter.eligible) await one.voter.ask(claim());
    proxy.heal();
    await one.eligible();
    assert.match(say(await one.voter.ask(claim())), /^ok/);
    assert.equal(await onServer(server, connectionsSeen), before + 1);
  });

  test('B50: a server that became a replica refuses by the word readonly, and grants again when it is a primary', async () => {
    await using server = await startRedisServer();
    await using one = rig(server.port);
    await one.eligible();
    await onServer(server, async (redis) => await redis.replicaof('127.0.0.1', '1'));
    assert.match(say(await one.voter.ask(claim())), /^error READONLY/);
    assert.equal(one.errors()['readonly'], 1);
    await onServer(server, async (redis) => await redis.replicaof('NO', 'ONE'));
    assert.match(say(await one.voter.ask(claim())), /^ok/);
  });

  test('B52: a server out of memory refuses by the word oom, and grants again when it has some', async () => {
    await using server = await startRedisServer();
    await using one = rig(server.port);
    await one.eligible();
    await onServer(server, async (redis) => await redis.config('SET', 'maxmemory', '1'));
    assert.match(say(await one.voter.ask(claim())), /^error OOM/);
    assert.equal(one.errors()['oom'], 1);
    await onServer(server, async (redis) => await redis.config('SET', 'maxmemory', '0'));
    assert.match(say(await one.voter.ask(claim())), /^ok/);
  });

  test('a wrong password is told as auth, and tried again with growing pauses', async () => {
    await using server = await startRedisServer({ args: ['--requirepass', 'right-test-password'] });
    await using wrong = rig(server.port, { password: 'wrong-test-password' });
    await using none = rig(server.port);
    await using right = rig(server.port, { password: 'right-test-password' });
    await right.eligible();
    await wrong.events.until(() => wrong.errors()['auth']);
    await none.events.until(() => none.errors()['auth']);
    assert.equal(say(await wrong.voter.ask(claim())), 'error down');
  });

  test('a user who may not load scripts: no storm of connections, and the reason is told', async () => {
    await using server = await startRedisServer();
    await using redis = disposing(new Redis(server.url));
    await redis.it.acl('SETUSER', 'limited', 'on', '>a-test-password', '~*', '&*', '+@all', '-script');
    const before = await connectionsSeen(redis.it);
    await using one = rig(server.port, { username: 'limited', password: 'a-test-password' });
    await one.events.until(() => one.errors()['noscript']);
    await one.events.until(() => ((one.errors()['noscript'] ?? 0) > 2 ? true : undefined));
    assert.equal(await connectionsSeen(redis.it), before + 1);
    assert.ok(!one.voter.eligible);
    await redis.it.acl('SETUSER', 'limited', '+script');
    await one.eligible();
  });

  test('nobody at the port: told as refused', async () => {
    await using one = rig(1);
    await one.events.until(() => one.errors()['refused']);
    assert.equal(say(await one.voter.ask(claim())), 'error down');
  });
});

function disposing(it: Redis): { it: Redis } & AsyncDisposable {
  return { it, [Symbol.asyncDispose]: async () => it.disconnect() };
}

async function closed(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
}
