/** The suite for the port `Claims`, on claims with a ledger: beside the voters, without them, and instead of them. */
import { suite } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { claimsSuite, type Pair } from '../contract/claims-suite.ts';
import { FakeLedger } from '../support/fake-ledger.ts';
import { ledgerAt, ledgerUp, withLedger } from '../support/ledgers.ts';
import { startPostgres } from '../support/postgres.ts';
import { countedVoters, quorum } from '../support/quorum.ts';

suite('claims with a ledger', { concurrency: true }, () => {
  claimsSuite('3 Redis and PostgreSQL', async () => {
    const servers = await Promise.all([1, 2, 3].map(async () => await startRedisServer()));
    const ports = servers.map(({ port }) => port);
    const parts = await twoGateways(ports, 3);
    const [one, two] = parts.gateways.map((gateway) => gateway.claims);
    return disposing({ one: one!, two: two! }, [...parts.all, ...servers]);
  });

  claimsSuite('PostgreSQL alone, as the 3 Redis are down', async () => {
    const ports = [await freePort(), await freePort(), await freePort()];
    const parts = await twoGateways(ports, 0);
    const [one, two] = parts.gateways.map((gateway) => gateway.claims.alone());
    return disposing({ one: one!, two: two! }, parts.all);
  });

  claimsSuite('PostgreSQL, and voters that nobody shares', async () => {
    const parts = await twoGateways([], 1);
    const [one, two] = parts.gateways.map((gateway) => gateway.claims);
    return disposing({ one: one!, two: two! }, parts.all);
  });

  claimsSuite('the fake, and a voter in memory', async () => {
    const ledger = new FakeLedger(systemClock);
    const [one, two] = [quorum([]), quorum([])];
    await Promise.all([countedVoters(one, 1), countedVoters(two, 1)]);
    const claims = [one, two].map((each) => withLedger(each, ledger, { sharedVoters: false }));
    return disposing({ one: claims[0]!.claims, two: claims[1]!.claims }, [...claims, one, two]);
  });
});

async function twoGateways(ports: readonly number[], voters: number) {
  const postgres = await startPostgres();
  const [one, two] = [quorum(ports), quorum(ports)];
  const ledgers = [ledgerAt(postgres.url), ledgerAt(postgres.url)];
  await Promise.all([one, two].map(async (each) => await countedVoters(each, voters)));
  await Promise.all(ledgers.map(ledgerUp));
  const gateways = [one, two].map((each, index) =>
    withLedger(each, ledgers[index]!.ledger, { sharedVoters: ports.length > 0 }),
  );
  return { gateways, all: [...gateways, one, two, ...ledgers, postgres] };
}

function disposing(pair: Pick<Pair, 'one' | 'two'>, parts: readonly AsyncDisposable[]): Pair {
  return {
    ...pair,
    [Symbol.asyncDispose]: async () => {
      for (const part of parts) await part[Symbol.asyncDispose]();
    },
  };
}
