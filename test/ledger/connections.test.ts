/** What can happen between a gateway and PostgreSQL, on a real one. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Client } from 'pg';
import { systemClock as clock } from '../../src/clock.ts';
import type { RowLease } from '../../src/core/ports.ts';
import { until } from '../../src/demo/until.ts';
import { selfSigned } from '../support/certificate.ts';
import { ledgerAt, ledgerUp } from '../support/ledgers.ts';
import { startPostgres } from '../support/postgres.ts';
import { freshKey } from '../support/quorum.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const lease = (id = freshKey().id, keepMs = 600_000): RowLease => ({
  ...{ id, keepMs, token: id.slice(0, 8), attempt: 1, leaseMs: 30_000 },
});
const done = { status: 200, wallMs: 1_790_000_000_000, traceId: '', reply: undefined };

suite('the way to PostgreSQL', { concurrency: 2 }, () => {
  test('every session is ended between two statements: the next one is answered all the same', async () => {
    await using postgres = await startPostgres();
    await using one = ledgerAt(postgres.url, { connections: 3 });
    await ledgerUp(one);
    for (let round = 0; round < 5; round += 1) {
      await Promise.all([1, 2, 3].map(async () => await one.ledger.look(freshKey().id)));
      await postgres.terminateBackends();
      assert.equal((await one.ledger.take(lease())).kind, 'ours');
    }
    assert.deepEqual(one.events.of('ledgerState').at(-1), [true]);
  });

  test('a server that is silent: unavailable in its time, and after three in a row nothing is asked', async () => {
    await using postgres = await startPostgres();
    await using proxy = await startTcpProxy(clock, postgres.port);
    await using one = ledgerAt(postgres.url.replace(String(postgres.port), String(proxy.port)), { timeoutMs: 300 });
    await ledgerUp(one);
    proxy.stall();
    for (const asked of [true, true, true, false, false])
      assert.deepEqual(await one.ledger.take(lease()), { kind: 'unavailable', asked });
    assert.deepEqual(one.events.of('ledgerState').at(-1), [false, 'timeout']);
    proxy.heal();
    await ledgerUp(one);
    assert.equal((await one.ledger.take(lease())).kind, 'ours');
  });

  test('the server behind all connections is gone without a word, and another stands in its place: used again within seconds', async () => {
    await using postgres = await startPostgres();
    await using proxy = await startTcpProxy(clock, postgres.port);
    const url = postgres.url.replace(String(postgres.port), String(proxy.port));
    await using one = ledgerAt(url, { timeoutMs: 300, connections: 6 });
    await ledgerUp(one);
    await Promise.all(Array.from({ length: 6 }, async () => await one.ledger.look(freshKey().id)));
    proxy.forsake();
    for (let n = 0; n < 3; n += 1) assert.equal((await one.ledger.take(lease())).kind, 'unavailable');
    const begunMs = clock.now();
    await ledgerUp(one);
    assert.ok(clock.now() - begunMs < 12_000, `${clock.now() - begunMs} ms`);
    assert.equal((await one.ledger.take(lease())).kind, 'ours');
  });

  test('versions that change while a statement waits for the row: it tells what it found, not what there was when it began', async () => {
    await using postgres = await startPostgres();
    await using one = ledgerAt(postgres.url);
    await ledgerUp(one);
    const { id } = freshKey();
    const change = { id, applied: '', pending: '', instead: '', keepMs: 600_000 };
    await one.ledger.order({ ...change, applied: '1015' });
    const other = new Client(postgres.url);
    await using closing = new AsyncDisposableStack();
    closing.defer(async () => await other.end());
    await other.connect();
    await other.query("begin; update hookonce_versions set applied = '1019', pending = '1019'");
    const asked = one.ledger.order({ ...change, pending: '1018' });
    await until(clock, 'the statement to wait', async () => {
      const rows = await postgres.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'");
      return rows.length > 0 || undefined;
    });
    await other.query('commit');
    assert.deepEqual(await asked, { applied: '1019', pending: '1019' });
  });

  test('a server that is silent does not hold up the end', async () => {
    await using postgres = await startPostgres();
    await using proxy = await startTcpProxy(clock, postgres.port);
    const one = ledgerAt(postgres.url.replace(String(postgres.port), String(proxy.port)));
    await ledgerUp(one);
    await Promise.all([1, 2, 3].map(async () => await one.ledger.look(freshKey().id)));
    proxy.stall();
    const waiting = one.ledger.take(lease());
    const begun = clock.now();
    await one[Symbol.asyncDispose]();
    assert.ok(clock.now() - begun < 3_000, `${clock.now() - begun}`);
    assert.equal((await waiting).kind, 'unavailable');
  });

  test('a row that somebody else has locked: given up in its time, by the server too', async () => {
    await using postgres = await startPostgres();
    await using one = ledgerAt(postgres.url, { timeoutMs: 400 });
    await ledgerUp(one);
    const mine = lease();
    await one.ledger.take(mine);
    const locked = postgres.query(
      `begin; select 1 from hookonce_events where key = '${mine.id}' for update; select pg_sleep(60)`,
    );
    locked.catch(() => undefined);
    const busy = "select 1 from pg_stat_activity where wait_event = 'PgSleep'";
    await until(clock, 'the lock', async () => ((await postgres.query(busy)).length === 1 ? true : undefined));
    assert.deepEqual(await one.ledger.extend(mine, false), { kind: 'unavailable', asked: true });
    const waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock'";
    await until(clock, 'nobody to wait for it', async () =>
      (await postgres.query(waiting)).length === 0 ? true : undefined,
    );
    await postgres.terminateBackends();
    assert.equal((await one.ledger.take(lease())).kind, 'ours');
  });

  test('more statements at once than there are connections: each has its turn', async () => {
    await using postgres = await startPostgres();
    await using one = ledgerAt(postgres.url, { connections: 2 });
    await ledgerUp(one);
    const taken = await Promise.all(Array.from({ length: 200 }, async () => await one.ledger.take(lease())));
    assert.ok(taken.every(({ kind }) => kind === 'ours'));
    const sessions = "select 1 from pg_stat_activity where application_name = 'hookonce'";
    assert.ok((await postgres.query(sessions)).length <= 2);
  });

  test('TLS: a certificate that is trusted, and none that is not', async () => {
    const certificate = selfSigned();
    await using postgres = await startPostgres({ tls: certificate });
    const at = postgres.url.replace('127.0.0.1', 'localhost');
    const tls = { verify: true, ca: Buffer.from(certificate.cert), cert: undefined, key: undefined };
    await using trusted = ledgerAt(at, { tls });
    await ledgerUp(trusted);
    assert.equal((await trusted.ledger.take(lease())).kind, 'ours');
    for (const wrong of [
      { tls: { ...tls, ca: undefined } },
      { tls: { ...tls, ca: Buffer.from(selfSigned().cert) } },
      { tls, host: '127.0.0.1' },
    ]) {
      await using doubted = ledgerAt(at, wrong);
      await doubted.events.until(() => doubted.events.of('ledgerState').find(([, why]) => why === 'tls'));
      assert.equal(doubted.ledger.up, false);
    }
    await using plain = ledgerAt(at);
    await plain.events.until(() => plain.events.of('ledgerState').find(([, why]) => why === 'auth'));
    await using careless = ledgerAt(at, { tls: { ...tls, verify: false, ca: undefined } });
    await ledgerUp(careless);
  });

  test('failover: a standby is not written to, and what it followed is there once it is promoted', async () => {
    await using postgres = await startPostgres();
    await using one = ledgerAt(postgres.url);
    await ledgerUp(one);
    const mine = lease();
    await one.ledger.take(mine);
    await one.ledger.complete(mine, done);
    await using standby = await postgres.standby();
    await using two = ledgerAt(postgres.url.replace(String(postgres.port), String(standby.port)));
    await two.events.until(() => two.events.of('ledgerState').find(([, why]) => why === 'readonly'));
    await postgres.kill();
    assert.deepEqual(await one.ledger.take(lease()), { kind: 'unavailable', asked: true });
    await standby.promote();
    await ledgerUp(two);
    assert.equal((await two.ledger.take(lease(mine.id))).kind, 'done');
    assert.equal((await two.ledger.take(lease())).kind, 'ours');
  });

  test('eight gateways that start at once on an empty database: the tables are made once', async () => {
    await using postgres = await startPostgres();
    const ledgers = Array.from({ length: 8 }, () => ledgerAt(postgres.url, { connections: 1 }));
    await Promise.all(ledgers.map(ledgerUp));
    for (const each of ledgers) {
      assert.equal((await each.ledger.take(lease())).kind, 'ours');
      await each[Symbol.asyncDispose]();
    }
    assert.deepEqual(await postgres.query('select step from hookonce_migrations'), [{ step: 1 }]);
  });

  test('a user that may only read and write: enough once the tables are there, and said what is missing before', async () => {
    await using postgres = await startPostgres();
    await postgres.query('create role app login; revoke create on schema public from public');
    const asApp = postgres.url.replace('hookonce@', 'app@');
    await using early = ledgerAt(asApp);
    await early.events.until(() => early.events.of('ledgerState').find(([, why]) => why === 'schema'));
    assert.ok(early.events.of('warn').length > 0);
    await using owner = ledgerAt(postgres.url);
    await ledgerUp(owner);
    await postgres.query('grant select, insert, update, delete on all tables in schema public to app');
    await ledgerUp(early);
    assert.equal((await early.ledger.take(lease())).kind, 'ours');
  });

  test('it is not there yet at the start: used as soon as it is', async () => {
    await using postgres = await startPostgres();
    await postgres.stop();
    await using one = ledgerAt(postgres.url);
    await one.events.until(() => one.events.of('ledgerState').find(([, why]) => why === 'refused'));
    assert.deepEqual(await one.ledger.take(lease()), { kind: 'unavailable', asked: false });
    await postgres.start();
    await ledgerUp(one);
  });

  test('rows that have had their time are deleted by one of all gateways, and no others', async () => {
    await using postgres = await startPostgres();
    await using one = ledgerAt(postgres.url);
    await using two = ledgerAt(postgres.url);
    await Promise.all([one, two].map(ledgerUp));
    for (let n = 0; n < 20; n += 1) await one.ledger.complete(lease(undefined, n < 15 ? 1 : 600_000), done);
    await postgres.query(
      "update hookonce_events set expires_at = expires_at - interval '2 minutes' where expires_at < now() + interval '1 minute'",
    );
    const swept = await Promise.all([one, two].map(async ({ ledger }) => await ledger.sweep(0)));
    assert.equal(swept[0]! + swept[1]!, 15);
    assert.equal((await postgres.query('select 1 from hookonce_events')).length, 5);
    assert.equal(await two.ledger.sweep(60), 0, 'somebody has just done it');
  });
});
