/** Versions on a quorum of real nodes: what one gateway wrote, every other learns, whichever node is missing. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { until } from '../../src/demo/until.ts';
import type { VersionChange } from '../../src/core/ports.ts';
import { keys } from '../../src/redis/codec.ts';
import { onNode } from '../support/keys.ts';
import { countedVoters, freshKey, quorum, type Quorum } from '../support/quorum.ts';

interface Pair extends AsyncDisposable {
  readonly nodes: readonly RedisServer[];
  readonly one: Quorum;
  readonly two: Quorum;
}

async function start(): Promise<Pair> {
  const stack = new AsyncDisposableStack();
  const nodes = await Promise.all(
    [1, 2, 3].map(async () => stack.use(await startRedisServer({ appendonly: 'always' }))),
  );
  const ports = nodes.map(({ port }) => port);
  const claims = { voterTimeoutMs: 500 };
  const [one, two] = [stack.use(quorum(ports, { claims })), stack.use(quorum(ports, { claims }))];
  await Promise.all([countedVoters(one, 3), countedVoters(two, 3)]);
  return { nodes, one, two, [Symbol.asyncDispose]: async () => await stack.disposeAsync() };
}

const change = (more: Partial<VersionChange> = {}): VersionChange => ({
  ...{ id: freshKey().id, applied: '', pending: '', instead: '', keepMs: 600_000 },
  ...more,
});

suite('versions on a quorum', { concurrency: true }, () => {
  test('what was applied is seen by others, also when any one node is gone', async () => {
    await using pair = await start();
    const { one, two, nodes } = pair;
    const at = change();
    assert.deepEqual(await one.claims.order({ ...at, pending: '107' }), { applied: '', pending: '' });
    assert.deepEqual(await one.claims.order({ ...at, applied: '107', instead: '107' }), {
      applied: '',
      pending: '107',
    });
    for (const node of nodes) {
      node.freeze();
      assert.deepEqual(await two.claims.order(at), { applied: '107', pending: '' });
      node.thaw();
      await countedVoters(two, 3);
      await until(clock, 'it to be asked again', () => two.voters.every((voter) => voter.counted) || undefined);
    }
  });

  test('without a quorum nothing is known, and nothing is said to be written', async () => {
    await using pair = await start();
    const { one, nodes } = pair;
    await nodes[0]!.kill();
    await nodes[1]!.kill();
    assert.equal(await one.claims.order(change({ pending: '107' })), 'unavailable');
  });

  test('a record of another kind is an error, and takes nobody along', async () => {
    await using pair = await start();
    const { one, nodes } = pair;
    const at = change();
    await onNode(nodes[0]!, async (redis) => await redis.set(keys.record('ho', at.id), 'o1,0'));
    assert.deepEqual(await one.claims.order({ ...at, pending: '107' }), { applied: '', pending: '' });
    await onNode(nodes[1]!, async (redis) => await redis.set(keys.record('ho', at.id), 'v107'));
    assert.equal(await one.claims.order({ ...at, pending: '108' }), 'unavailable');
  });

  test('versions are kept as long as was said, and no longer', async () => {
    await using pair = await start();
    const { one, two } = pair;
    const at = change({ keepMs: 400 });
    await one.claims.order({ ...at, applied: '107' });
    await one.claims.order({ ...at, applied: '105', keepMs: 10 });
    assert.deepEqual(await two.claims.order(at), { applied: '107', pending: '' });
    await until(clock, 'them to have had their time', async () => {
      const found = await two.claims.order(at);
      return typeof found === 'object' && found.applied === '' ? true : undefined;
    });
  });
});
