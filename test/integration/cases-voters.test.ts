/** Public reports about locks and Redis: nodes that are silent, full, read-only, flushed or forgetful, seen from outside. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { header } from '../../src/core/delivery.ts';
import { systemClock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { until } from '../../src/demo/until.ts';
import { answer, held } from '../support/application.ts';
import { startCluster, votersUp, type Cluster } from '../support/cluster.ts';
import { gatewayConfig, secretFiles, shortLock } from '../support/config.ts';
import { github, outcome, retryAfter } from '../support/deliveries.ts';
import { onNode, writtenToFile } from '../support/keys.ts';
import { startGateway } from '../../src/demo/gateway.ts';
import { program } from '../support/program.ts';
import type { VoterStatus } from '../../src/core/ports.ts';

const short = { settings: { claims: shortLock } };
const patience = { retryAfterScale: 0.2, maxTries: 100 };

const deliver = async (cluster: Cluster, id: string, n = 0) => await cluster.post(n, '/github', github(id));

async function allUp(cluster: Cluster): Promise<void> {
  for (const gateway of cluster.gateways) await votersUp(gateway, cluster.nodes.length);
}

async function voters(gateway: Gateway): Promise<readonly VoterStatus[]> {
  const { body } = await exchange(`${gateway.adminUrl}/readyz`);
  return (JSON.parse(body.toString()) as { voters: VoterStatus[] }).voters;
}

const linesAbout = ({ child }: Gateway, about: RegExp): Record<string, unknown>[] =>
  child.lines.filter((line) => about.test(line)).map((line) => JSON.parse(line) as Record<string, unknown>);

/** `count` events at both gateways in turn, each answered 200 and handled once. */
async function allTaken(cluster: Cluster, name: string, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    assert.equal((await deliver(cluster, `${name}-${n}`, n)).status, 200, `${name}-${n}`);
    assert.equal(cluster.application.of(`${name}-${n}`).length, 1);
  }
}

async function allRefused(cluster: Cluster, name: string, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const reply = await deliver(cluster, `${name}-${n}`, n);
    assert.deepEqual([reply.status, outcome(reply), retryAfter(reply)], [503, 'unavailable', 1]);
    assert.equal(cluster.application.of(`${name}-${n}`).length, 0);
  }
}

suite('reports about voters', { concurrency: 2 }, () => {
  test('B45: a node goes silent without closing anything: all 20 are taken, it is counted, and it takes part again', async () => {
    await using cluster = await startCluster(short);
    await allTaken(cluster, 'warm', 2);
    cluster.nodes[0]!.freeze();
    await allTaken(cluster, 'D', 20);
    assert.ok((await cluster.metric('hookonce_voter_errors_total', { class: 'timeout' })) > 0);
    const [silent] = await voters(cluster.gateways[0]!);
    assert.deepEqual([silent?.state, silent?.why], ['down', 'timeout']);
    cluster.nodes[0]!.thaw();
    await allUp(cluster);
  });

  test('B49: SCRIPT FLUSH on all nodes in the middle of D22, then all restarted: taken, once the hold is over', async () => {
    await using cluster = await startCluster(short);
    const work = held();
    cluster.application.script('D22', work.step, answer(200));
    const first = deliver(cluster, 'D22');
    await work.arrived;
    for (const node of cluster.nodes) await onNode(node, async (redis) => await redis.script('FLUSH'));
    assert.equal((await deliver(cluster, 'D23', 1)).status, 200);
    work.finish({ status: 500 });
    assert.equal((await first).status, 500);
    assert.equal((await deliver(cluster, 'D22', 1)).status, 200, 'released after the flush');
    assert.equal(cluster.application.of('D22').length, 2);
    for (const { child } of cluster.gateways)
      assert.deepEqual(
        child.lines.filter((line) => /noscript/i.test(line)),
        [],
      );
    for (const node of cluster.nodes) {
      const errors = await cluster.metric('hookonce_voter_errors_total', {
        class: 'noscript',
        node: `127.0.0.1:${node.port}`,
      });
      assert.ok(errors <= 2, 'once for each gateway');
    }

    for (const node of cluster.nodes) await node.kill();
    for (const node of cluster.nodes) await node.start();
    const { ok } = await deliverUntilDone(systemClock, async () => await deliver(cluster, 'D24'), patience);
    assert.ok(ok);
    assert.equal(cluster.application.of('D24').length, 1);
    assert.equal(
      header(cluster.application.of('D24')[0]!.headers, 'hookonce-memory-since') !== undefined,
      true,
      'the nodes have no file: they forgot',
    );
  });

  test('B50: one node becomes a replica: all taken; two: 503; primaries again: taken by the same processes', async () => {
    await using cluster = await startCluster(short);
    await allTaken(cluster, 'warm', 2);
    const [first, second] = cluster.nodes;
    const replicaOf = async (node: typeof first, ...of: [string, string]) =>
      await onNode(node!, async (redis) => await redis.replicaof(...of));
    await replicaOf(first, '127.0.0.1', '1');
    await allTaken(cluster, 'one', 5);
    assert.ok((await cluster.metric('hookonce_voter_errors_total', { class: 'readonly' })) > 0);
    await replicaOf(second, '127.0.0.1', '1');
    await allRefused(cluster, 'two', 2);
    await until(
      systemClock,
      'both replicas to be named',
      async () =>
        (await voters(cluster.gateways[0]!)).filter(({ why }) => why === 'a replica').length === 2 || undefined,
    );
    await replicaOf(first, 'NO', 'ONE');
    await replicaOf(second, 'NO', 'ONE');
    await allUp(cluster);
    await allTaken(cluster, 'again', 2);
  });

  test('B52: one node out of memory: all taken; two: 503 and counted as oom; then as before', async () => {
    await using cluster = await startCluster(short);
    await allTaken(cluster, 'warm', 2);
    const memory = async (nodes: number, limit: string) => {
      for (const node of cluster.nodes.slice(0, nodes))
        await onNode(node, async (redis) => await redis.config('SET', 'maxmemory', limit));
    };
    await memory(1, '1');
    await allTaken(cluster, 'one', 3);
    await memory(2, '1');
    await allRefused(cluster, 'two', 2);
    assert.ok((await cluster.metric('hookonce_voter_errors_total', { class: 'oom' })) > 0);
    await memory(2, '0');
    await allTaken(cluster, 'again', 2);
  });

  test('B57: of five nodes a bare majority holds an event, and one of them forgets it in flight: forwarded once', async () => {
    await using cluster = await startCluster({ nodes: 5, proxied: true });
    for (const proxy of cluster.proxies.slice(3)) proxy.cut();
    const work = held();
    cluster.application.script('B57', work.step);
    const first = deliver(cluster, 'B57');
    await work.arrived;
    for (const proxy of cluster.proxies.slice(3)) proxy.heal();
    await cluster.nodes[2]!.kill();
    await cluster.nodes[2]!.start();
    await votersUp(cluster.gateways[1]!, 4);
    await until(
      systemClock,
      'the third to be on hold',
      async () => (await voters(cluster.gateways[1]!))[2]?.state === 'held' || undefined,
    );
    const copy = await deliver(cluster, 'B57', 1);
    assert.deepEqual([copy.status, outcome(copy)], [503, 'in-progress']);
    work.finish();
    assert.equal((await first).status, 200);
    assert.equal(outcome(await deliver(cluster, 'B57', 1)), 'duplicate');
    assert.equal(cluster.application.of('B57').length, 1);
  });

  test('B58: one of three nodes fails over to a replica that never got the event: still a duplicate', async () => {
    await using cluster = await startCluster(short);
    await allTaken(cluster, 'D25', 1);
    await onNode(cluster.nodes[0]!, async (redis) => await redis.flushall());
    assert.equal(outcome(await deliver(cluster, 'D25-0', 1)), 'duplicate');
    await allUp(cluster);
    // With another node gone, the one that forgot must have learnt it.
    await cluster.nodes[1]!.kill();
    assert.equal(outcome(await deliver(cluster, 'D25-0', 1)), 'duplicate');
    assert.equal(cluster.application.of('D25-0').length, 1);
  });

  test('B58: the only node fails over and forgets: forwarded again, and everybody is told', async () => {
    await using cluster = await startCluster({ nodes: 1, ...short });
    await allTaken(cluster, 'D25', 1);
    // A gateway tells a node again what it wrote in its last seconds: these have written nothing.
    for (const gateway of cluster.gateways) await gateway.restart();
    await allUp(cluster);
    await onNode(cluster.nodes[0]!, async (redis) => await redis.flushall());
    const { ok } = await deliverUntilDone(systemClock, async () => await deliver(cluster, 'D25-0', 1), patience);
    assert.ok(ok);
    const [before, after] = cluster.application.of('D25-0');
    assert.equal(header(before!.headers, 'hookonce-memory-since'), undefined);
    assert.notEqual(header(after!.headers, 'hookonce-memory-since'), undefined);
    assert.ok((await cluster.metric('hookonce_memory_lost_total')) > 0);
    assert.ok(cluster.gateways.some((gateway) => linesAbout(gateway, /lost its memory/).length > 0));
  });

  test('B60: one of three nodes down for long: all taken', async () => {
    await using cluster = await startCluster(short);
    await cluster.nodes[1]!.kill();
    await allTaken(cluster, 'down', 20);
  });

  test('B60: a server that is listed under two addresses is named, and is one vote', async () => {
    await using cluster = await startCluster({ gateways: 0, nodes: 2, ...short });
    const [a, b] = cluster.nodes;
    const urls = [a!.url, `redis://localhost:${a!.port}`, b!.url];
    await using gateway = await startGateway(program, systemClock, {
      config: gatewayConfig(cluster.application.url, urls, short.settings),
      files: secretFiles,
    });
    await votersUp(gateway, 2);
    const [line] = linesAbout(gateway, /same server/);
    assert.deepEqual(line?.['nodes'], [`127.0.0.1:${a!.port}`, `localhost:${a!.port}`]);
    assert.equal((await exchange(`${gateway.url}/github`, { method: 'POST', ...github('twin') })).status, 200);
    await b!.kill();
    const alone = await exchange(`${gateway.url}/github`, { method: 'POST', ...github('twin-alone') });
    assert.deepEqual([alone.status, outcome(alone)], [503, 'unavailable']);
  });

  test('B107: nodes that drop keys when their memory is full: a warning and a gauge for each', async () => {
    await using cluster = await startCluster({ gateways: 0 });
    for (const [at, policy] of ['volatile-lru', 'allkeys-lru'].entries()) {
      await onNode(cluster.nodes[at]!, async (redis) => await redis.config('SET', 'maxmemory-policy', policy));
    }
    const gateway = await cluster.gateway();
    const unsafe = async () =>
      (await gateway.metrics()).split('\n').filter((line) => line.startsWith('hookonce_voter_unsafe_eviction{'));
    await until(systemClock, 'the gauges', async () => (await unsafe()).length === 3 || undefined);
    const shown = await unsafe();
    assert.deepEqual(
      cluster.nodes.map(({ port }) => shown.find((line) => line.includes(`:${port}"`))?.slice(-1)),
      ['1', '1', '0'],
    );
    assert.deepEqual(
      linesAbout(gateway, /noeviction/)
        .map(({ policy }) => String(policy))
        .sort((a, b) => a.localeCompare(b)),
      ['allkeys-lru', 'volatile-lru'],
    );
  });

  test('B108: a node that may not be asked about itself: it starts, and says so once', async () => {
    await using cluster = await startCluster({ gateways: 0 });
    const password = 'a-test-password';
    for (const node of cluster.nodes) {
      await onNode(
        node,
        async (redis) =>
          await redis.acl('SETUSER', 'limited', 'on', `>${password}`, '~*', '&*', '+@all', '-config', '-info'),
      );
    }
    const nodes = cluster.nodes.map(({ url }) => ({ url, username: 'limited', password: { file: './redis.secret' } }));
    await using gateway = await startGateway(program, systemClock, {
      config: {
        ...gatewayConfig(
          cluster.application.url,
          cluster.nodes.map(({ url }) => url),
        ),
        redis: { nodes },
      },
      files: { ...secretFiles, 'redis.secret': password },
    });
    await votersUp(gateway, 3).catch(() => {});
    await until(systemClock, 'a line for each', () => linesAbout(gateway, /policy unknown/).length === 3 || undefined);
    // Two more rounds of probes say nothing new.
    const probes = async () =>
      Number(/hookonce_voter_command_seconds_count\{[^}]*\} (\d+)/.exec(await gateway.metrics())?.[1]);
    const seen = await probes();
    await until(systemClock, 'more probes', async () => (await probes()) >= seen + 2 || undefined);
    assert.equal(linesAbout(gateway, /policy unknown/).length, 3);
    assert.equal(gateway.child.lines.filter((line) => !line.startsWith('{')).length, 0, 'nothing but log lines');
  });

  test('a node that was restarted with its file is on hold: which, why and for how long is seen', async () => {
    await using cluster = await startCluster({ redis: { appendonly: 'everysec' } });
    const [gateway] = cluster.gateways;
    await writtenToFile(cluster.nodes[0]!);
    await cluster.nodes[0]!.kill();
    await cluster.nodes[0]!.start();
    const status = await until(systemClock, 'the hold', async () =>
      (await voters(gateway!)).find(({ state }) => state === 'held'),
    );
    assert.deepEqual(
      [status.node, status.why],
      [`127.0.0.1:${cluster.nodes[0]!.port}`, 'it was restarted and may have forgotten locks'],
    );
    assert.ok(status.leftMs! > 15_000 && status.leftMs! <= 21_202);
    const line = linesAbout(gateway!, /voter changed its state/).findLast(({ state }) => state === 'held')!;
    assert.deepEqual([line['node'], line['why']], [status.node, status.why]);
    assert.ok(Number(line['leftMs']) > 15_000);
  });
});
