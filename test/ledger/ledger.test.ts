/** One suite for the port `Ledger`, on everything that implements it. */
import { suite } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { FakeLedger } from '../support/fake-ledger.ts';
import { ledgerAt, ledgerUp } from '../support/ledgers.ts';
import { startPostgres } from '../support/postgres.ts';
import { ledgerSuite } from './suite.ts';

suite('ledger', { concurrency: true }, () => {
  ledgerSuite('the fake', async () => {
    const ledger = new FakeLedger(systemClock);
    return { one: ledger, two: ledger, [Symbol.asyncDispose]: async () => {} };
  });

  ledgerSuite('PostgreSQL', async () => {
    const postgres = await startPostgres();
    const [one, two] = [ledgerAt(postgres.url), ledgerAt(postgres.url)];
    await Promise.all([ledgerUp(one), ledgerUp(two)]);
    return {
      ...{ one: one.ledger, two: two.ledger },
      [Symbol.asyncDispose]: async () => {
        for (const part of [one, two, postgres]) await part[Symbol.asyncDispose]();
      },
    };
  });
});
