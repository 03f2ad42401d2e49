/** Explain and forget where there is a ledger: the row beside the voters, and first of all to be forgotten. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { startChild } from '../../src/demo/child.ts';
import { LedgerOperator } from '../../src/core/ledger-operator.ts';
import { VoterOperator } from '../../src/redis/operator.ts';
import { held } from '../support/application.ts';
import { github, outcome } from '../support/deliveries.ts';
import { FakeLedger } from '../support/fake-ledger.ts';
import { startLedgerCluster } from '../support/ledger-cluster.ts';
import { withLedger } from '../support/ledgers.ts';
import { onNode } from '../support/keys.ts';
import { program } from '../support/program.ts';
import { countedVoters, freshKey, patient, quorum } from '../support/quorum.ts';

const retentionMs = 600_000;
const ok = { status: 200, traceId: '', reply: undefined };

async function start() {
  const voters = quorum([]);
  await countedVoters(voters, 1);
  const ledger = new FakeLedger(clock);
  const { claims, behind } = withLedger(voters, ledger);
  const operator = new LedgerOperator(new VoterOperator(voters.voters, patient), ledger);
  const stack = new AsyncDisposableStack();
  stack.use(voters);
  stack.use(behind);
  return { ledger, claims, operator, [Symbol.asyncDispose]: async () => await stack.disposeAsync() };
}

test('explained: no row, a running lease, done, and no answer', async () => {
  await using set = await start();
  const key = freshKey();
  const nothing = await set.operator.explain(key);
  assert.deepEqual([nothing.ledger, nothing.forecast], [{ answer: 'no row' }, { kind: 'forwarded', attempt: 1 }]);
  const claim = await set.claims.claim(key, retentionMs);
  assert.ok(claim.kind === 'won');
  const running = await set.operator.explain(key);
  assert.ok(running.ledger?.answer === 'held' && running.ledger.lock);
  assert.equal(running.forecast.kind, 'in-progress');
  await set.claims.complete(claim.lease, ok);
  const handled = await set.operator.explain(key);
  assert.ok(handled.ledger?.answer === 'done' && handled.ledger.record.done?.status === 200);
  assert.equal(handled.forecast.kind, 'duplicate');
  set.ledger.up = false;
  assert.deepEqual((await set.operator.explain(key)).ledger, { answer: 'none' });
});

test('explained by the row alone, where the voters know nothing', async () => {
  await using set = await start();
  const row = { id: freshKey().id, token: 'token-of-another', attempt: 3, leaseMs: 60_000, keepMs: retentionMs };
  const key = { ...freshKey(), id: row.id };
  await set.ledger.take(row);
  const running = await set.operator.explain(key);
  assert.ok(running.forecast.kind === 'in-progress' && running.ledger?.answer === 'held');
  assert.equal(running.ledger.lock?.holder, 'token-of', 'the beginning of the token is no token');
  await set.ledger.release(row, false);
  assert.deepEqual((await set.operator.explain(key)).forecast, { kind: 'forwarded', attempt: 4 });
  await set.ledger.complete(row, { ...ok, wallMs: 1 });
  const { forecast } = await set.operator.explain(key);
  assert.ok(forecast.kind === 'duplicate' && forecast.attempt === 3);
});

test('forgotten: row and voters, and the next delivery is the next attempt', async () => {
  await using set = await start();
  const key = freshKey();
  const first = await set.claims.claim(key, retentionMs);
  assert.ok(first.kind === 'won');
  assert.equal((await set.operator.forget(key, retentionMs, false)).kind, 'in-progress');
  await set.claims.complete(first.lease, ok);
  assert.deepEqual(await set.operator.forget(key, retentionMs, false), {
    kind: 'forgotten',
    attempt: 1,
    running: false,
  });
  const next = await set.claims.claim(key, retentionMs);
  assert.ok(next.kind === 'won' && next.lease.attempt === 2);
  await set.claims.complete(next.lease, ok);
  assert.equal((await set.claims.claim(key, retentionMs)).kind, 'done');
  assert.deepEqual(await set.operator.forget(freshKey(), retentionMs, false), { kind: 'unknown' });
});

test('forgotten by force while it runs: its completion is refused by both', async () => {
  await using set = await start();
  const key = freshKey();
  const first = await set.claims.claim(key, retentionMs);
  assert.ok(first.kind === 'won');
  assert.deepEqual(await set.operator.forget(key, retentionMs, true), { kind: 'forgotten', attempt: 1, running: true });
  await set.claims.complete(first.lease, ok);
  const next = await set.claims.claim(key, retentionMs);
  assert.ok(next.kind === 'won' && next.lease.attempt === 2, next.kind);
});

test('not forgotten while the ledger does not answer: nothing is written anywhere', async () => {
  await using set = await start();
  const key = freshKey();
  const first = await set.claims.claim(key, retentionMs);
  assert.ok(first.kind === 'won');
  await set.claims.complete(first.lease, ok);
  set.ledger.up = false;
  const remember = [{ node: 'ledger', why: 'no answer' }];
  assert.deepEqual(await set.operator.forget(key, retentionMs, false), { kind: 'incomplete', remember });
  assert.equal((await set.claims.claim(key, retentionMs)).kind, 'done');
});

test('on the command line, with real nodes and a real PostgreSQL', async () => {
  await using set = await startLedgerCluster({ nodes: 1, gateways: 1 });
  const { cluster } = set;
  const work = held();
  cluster.application.script('event', work.step);
  const first = cluster.post(0, '/github', github('event'));
  await work.arrived;
  const cwd = cluster.gateways[0]!.directory;
  const hookonce = async (...args: string[]): Promise<{ code: number | null; text: string }> => {
    await using child = startChild(program.node, [program.entry, ...args, '--config', 'config.yaml'], { cwd });
    const { code } = await child.exited;
    return { code, text: child.lines.join('\n') };
  };
  const running = await hookonce('explain', 'github', 'event');
  assert.match(running.text, /^ledger +held +\S{8}… .* attempt 1, kept/m);
  assert.equal((await hookonce('forget', 'github', 'event')).code, 1);
  work.finish();
  assert.equal((await first).status, 200);
  await onNode(cluster.nodes[0]!, async (redis) => await redis.flushall());
  const handled = await hookonce('explain', 'github', 'event');
  assert.match(handled.text, /^ledger +done +- +attempt 1, completed with 200 at /m);
  assert.match(handled.text, /answered as a duplicate/);
  await set.postgres.stop();
  const refused = await hookonce('forget', 'github', 'event');
  assert.match(refused.text, /ledger \(no answer\)/);
  assert.equal(refused.code, 1);
  await set.postgres.start();
  await set.ledgers(true);
  assert.equal(outcome(await cluster.post(0, '/github', github('event'))), 'duplicate');
});

test('with no Redis at all: what was forgotten, at one gateway or on the command line, no other gateway still knows', async () => {
  await using set = await startLedgerCluster({
    nodes: 0,
    settings: { top: { admin: { token: { file: './token' } } } },
    files: { token: 'key' },
  });
  const { cluster, postgres } = set;
  const attempts = (): (string | undefined)[] =>
    cluster.application.of('event').map(({ headers }) => header(headers, 'hookonce-attempt'));
  const deliver = async (n: number) => outcome(await cluster.post(n, '/github', github('event')));
  const cwd = cluster.gateways[0]!.directory;
  const hookonce = async (...args: string[]): Promise<{ code: number | null; text: string }> => {
    await using child = startChild(program.node, [program.entry, ...args, '--config', 'config.yaml'], { cwd });
    const { code } = await child.exited;
    return { code, text: child.lines.join('\n') };
  };
  assert.deepEqual([await deliver(0), await deliver(0), await deliver(1)], [undefined, 'duplicate', 'duplicate']);

  const forgotten = await hookonce('forget', 'github', 'event');
  assert.deepEqual([forgotten.code, forgotten.text], [0, 'Forgotten: the next delivery is processed, as attempt 2.']);
  assert.match(
    (await hookonce('explain', 'github', 'event')).text,
    /^ledger +free .*would now be forwarded, as attempt 2/ms,
  );
  assert.deepEqual([await deliver(0), await deliver(1), await deliver(0)], [undefined, 'duplicate', 'duplicate']);
  assert.deepEqual(attempts(), ['1', '2']);

  const admin = `${cluster.gateways[1]!.adminUrl}/-/forget/github?id=event`;
  const reply = await fetch(admin, { method: 'POST', headers: { authorization: 'Bearer key' } });
  assert.equal(reply.status, 200, await reply.text());
  assert.deepEqual([await deliver(0), await deliver(1)], [undefined, 'duplicate']);
  assert.deepEqual(attempts(), ['1', '2', '3']);

  await postgres.stop();
  assert.equal((await hookonce('forget', 'github', 'event')).code, 1);
  assert.match(
    (await hookonce('explain', 'github', 'event')).text,
    /would now be answered 503: the ledger does not answer/,
  );
  assert.equal(await deliver(0), 'unavailable', 'whether it was forgotten meanwhile, only the ledger knows');
});
