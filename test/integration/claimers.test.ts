/** Many claimers of one event at the same instant, with a node missing: votes split most often then. */
import { test } from 'node:test';
import { startCluster } from '../support/cluster.ts';
import { stormForwardsOnce } from '../support/storm.ts';

const title =
  '20 claimers over four gateways with one of three nodes down: 500 rounds, each event forwarded once, as attempt 1';

test(title, { timeout: 300_000 }, async () => {
  await using cluster = await startCluster({ gateways: 4, settings: { route: { inFlight: { policy: 'wait' } } } });
  await cluster.nodes[2]!.kill();
  await stormForwardsOnce(cluster, { name: 'round', events: 500, copies: 20, atOnce: 1 });
});
