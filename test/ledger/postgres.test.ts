/** The real PostgreSQL of these tests, itself. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selfSigned } from '../support/certificate.ts';
import { startPostgres } from '../support/postgres.ts';

test('it keeps what it was told through a kill and a stop', async () => {
  await using postgres = await startPostgres();
  await postgres.query('create table kept (n int); insert into kept values (1)');
  await postgres.kill();
  await postgres.start();
  await postgres.query('insert into kept values (2)');
  await postgres.stop();
  await postgres.start();
  assert.deepEqual(await postgres.query('select count(*)::int as rows from kept'), [{ rows: 2 }]);
});

test('each database is empty', async () => {
  await using postgres = await startPostgres();
  const [one, other] = [await postgres.database(), await postgres.database()];
  await postgres.query('create table mine ()', one);
  await postgres.query('create table mine ()', other);
});

test('it takes nothing but TLS where it offers it', async () => {
  await using postgres = await startPostgres({ tls: selfSigned() });
  const [row] = await postgres.query<{ ssl: boolean }>('select ssl from pg_stat_ssl where pid = pg_backend_pid()');
  assert.deepEqual(row, { ssl: true });
  await assert.rejects(postgres.query('select 1', postgres.url.replace('sslmode=no-verify', 'sslmode=disable')));
});
