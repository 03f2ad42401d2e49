/** One suite for the port `Claims`, on everything that implements it. */
import { suite } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { startRedisServer } from '../../src/demo/redis-server.ts';
import { FakeClaims } from '../support/fake-claims.ts';
import { countedVoters, linksTo, patient, quorum, quorumOver } from '../support/quorum.ts';
import { claimsSuite, type Pair } from './claims-suite.ts';

suite('claims', { concurrency: true }, () => {
  claimsSuite('the fake', async () => {
    const claims = new FakeClaims(patient, systemClock);
    return { one: claims, two: claims, [Symbol.asyncDispose]: async () => {} };
  });

  claimsSuite('the embedded voter', async () => {
    // Two gateways cannot share a memory: two claims over one link stand for them.
    const links = linksTo([], patient.voterTimeoutMs);
    const [one, two] = [quorumOver(links), quorumOver(links)];
    await Promise.all([countedVoters(one, 1), countedVoters(two, 1)]);
    return disposing({ one: one.claims, two: two.claims }, [one, two]);
  });

  for (const nodes of [1, 3, 5]) {
    claimsSuite(`${nodes} Redis`, async () => {
      const servers = await Promise.all(Array.from({ length: nodes }, () => startRedisServer()));
      const ports = servers.map(({ port }) => port);
      const [one, two] = [quorum(ports), quorum(ports)];
      await Promise.all([countedVoters(one, nodes), countedVoters(two, nodes)]);
      return disposing({ one: one.claims, two: two.claims }, [one, two, ...servers]);
    });
  }
});

function disposing(pair: Pick<Pair, 'one' | 'two'>, parts: readonly AsyncDisposable[]): Pair {
  return {
    ...pair,
    [Symbol.asyncDispose]: async () => {
      for (const part of parts) await part[Symbol.asyncDispose]();
    },
  };
}
