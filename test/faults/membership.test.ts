/** Real gateways and senders while the three voters are replaced by three others, in two roll-outs as the docs say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { startGateway, type Gateway } from '../../src/demo/gateway.ts';
import { startRedisServer, type RedisServer } from '../../src/demo/redis-server.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import { until } from '../../src/demo/until.ts';
import { answer, scriptedApplication } from '../support/application.ts';
import { post, votersUp } from '../support/cluster.ts';
import { gatewayConfig, secretFiles } from '../support/config.ts';
import { github, outcome } from '../support/deliveries.ts';
import { sum } from '../support/metrics.ts';
import { program } from '../support/program.ts';

test('three voters are replaced by three others under traffic: every event once, none lost, none turned away', async (t) => {
  await using stack = new AsyncDisposableStack();
  const servers = async (): Promise<RedisServer[]> =>
    await Promise.all([1, 2, 3].map(async () => stack.use(await startRedisServer({ appendonly: 'everysec' }))));
  const [old, fresh] = [await servers(), await servers()];
  const application = stack.use(await scriptedApplication());
  application.otherwise(async (visit, socket) => {
    await clock.sleep(clock.random() * 30);
    return await answer(200)(visit, socket);
  });
  const start = async (nodes: readonly RedisServer[], previous: readonly RedisServer[] = []): Promise<Gateway> => {
    const urls = (list: readonly RedisServer[]): string[] => list.map(({ url }) => url);
    const redis = { timeout: '250ms', previous: urls(previous).map((url) => ({ url })) };
    const config = gatewayConfig(application.url, urls(nodes), {
      ...{ redis, claims: { lockTtl: '2s', budget: '650ms', relyOnWatchdog: true } },
      route: { inFlight: { policy: 'wait', wait: '1s' } },
    });
    return stack.use(await startGateway(program, clock, { config, files: secretFiles }));
  };

  let gateways = [await start(old), await start(old)];
  for (const gateway of gateways) await votersUp(gateway, 3);
  const stop = new AbortController();
  const events: string[] = [];
  const replies: string[] = [];
  const sender = async (name: string): Promise<void> => {
    for (let n = 0; !stop.signal.aborted; n += 1) {
      const again = clock.random() < 0.3 ? events[Math.floor(clock.random() * events.length)] : undefined;
      const event = again ?? `${name}-${n}`;
      const deliver = async (): Promise<void> => {
        const { ok } = await deliverUntilDone(
          clock,
          async () => {
            const reply = await post(gateways[Math.floor(clock.random() * gateways.length)]!, '/github', github(event));
            replies.push(String(outcome(reply)));
            return reply;
          },
          { retryAfterScale: 0.2, maxTries: 100 },
        );
        assert.ok(ok, event);
      };
      await Promise.all([deliver(), deliver()]);
      if (again === undefined) events.push(event);
      await clock.sleep(20);
    }
  };
  const senders = ['a', 'b', 'c'].map(sender);

  /** One gateway after the other. */
  const roll = async (next: () => Promise<Gateway>): Promise<void> => {
    for (const gone of gateways) {
      gateways = [...gateways, await next()].filter((gateway) => gateway !== gone);
      await gone.terminate();
    }
  };
  await roll(async () => await start(fresh, old));
  for (const gateway of gateways)
    await until(
      clock,
      'the new voters to count',
      async () => sum([await gateway.metrics()], 'hookonce_voter_state', { state: 'up' }) === 6 || undefined,
      60_000,
    );
  await roll(async () => await start(fresh));
  await clock.sleep(500);
  for (const server of old) await server.kill();
  stop.abort();
  await Promise.all(senders);

  // Whatever was handled by those who knew the old voters alone, those who never met them know.
  for (const event of events) {
    assert.equal(outcome(await post(gateways[0]!, '/github', github(event))), 'duplicate', event);
    // Voters that learn do not take back an attempt that won nothing, so a later one may be marked.
    assert.equal(application.of(event).length, 1, event);
  }
  const counts = Object.groupBy(replies, (reply) => reply);
  t.diagnostic(
    `${events.length} events: ${Object.entries(counts)
      .map(([name, all]) => `${name} ${all!.length}`)
      .join(', ')}`,
  );
  assert.equal(counts['unavailable'], undefined);
  for (const gateway of gateways)
    assert.equal(sum([await gateway.metrics()], 'hookonce_membership_conflicts_total', {}), 0);
});
