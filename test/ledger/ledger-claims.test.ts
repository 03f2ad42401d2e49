/** What claims make of the ledger's answers, and of none: voters in memory, a ledger in memory, real decisions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/clock.ts';
import type { Completion, Lease } from '../../src/core/ports.ts';
import { FakeLedger } from '../support/fake-ledger.ts';
import { withLedger, type WithLedger } from '../support/ledgers.ts';
import { countedVoters, freshKey, memoryLinks, quorumOver, type Quorum } from '../support/quorum.ts';

const retentionMs = 600_000;
const ok: Completion = { status: 200, traceId: '', reply: undefined };
const done = { ...ok, wallMs: 1_790_000_000_000 };

interface Set extends AsyncDisposable {
  readonly ledger: FakeLedger;
  readonly one: WithLedger;
  readonly two: WithLedger;
  readonly quorums: readonly Quorum[];
}

/** Two gateways over three voters in memory. */
async function start(more: Parameters<typeof withLedger>[2] = {}): Promise<Set> {
  await using starting = new AsyncDisposableStack();
  const links = memoryLinks(3);
  const quorums = [quorumOver(links), quorumOver(links)] as const;
  for (const quorum of quorums) starting.use(quorum);
  for (const quorum of quorums) await countedVoters(quorum, 3);
  const ledger = new FakeLedger(clock);
  const [one, two] = quorums.map((quorum) => starting.use(withLedger(quorum, ledger, more)));
  const stack = starting.move();
  return {
    ...{ ledger, quorums, one: one!, two: two! },
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  };
}

const won = async ({ claims }: WithLedger, key = freshKey()): Promise<Lease> => {
  const claim = await claims.claim(key, retentionMs);
  assert.ok(claim.kind === 'won', claim.kind);
  return claim.lease;
};
const verdicts = ({ events }: WithLedger): unknown[] => events.of('ledgerVerdict').map(([verdict]) => verdict);
const failed = ({ events }: WithLedger): unknown[] => events.of('ledgerWriteFailed').map(([operation]) => operation);

test('a first delivery asks the ledger once before it is forwarded; a copy that the voters know never does', async () => {
  await using set = await start();
  const lease = await won(set.one);
  assert.deepEqual(set.ledger.calls, ['take']);
  assert.equal((await set.two.claims.claim(lease.key, retentionMs)).kind, 'held');
  await set.one.claims.complete(lease, ok);
  assert.deepEqual(set.ledger.calls, ['take', 'complete 200']);
  assert.equal((await set.two.claims.claim(lease.key, retentionMs)).kind, 'done');
  assert.equal((await set.two.claims.peek(lease.key)).kind, 'done');
  assert.deepEqual(set.ledger.calls, ['take', 'complete 200']);
});

test('done in the ledger alone: a duplicate, and the voters are taught it', async () => {
  await using set = await start();
  const key = freshKey();
  await set.ledger.complete({ id: key.id, token: 'x', attempt: 1, leaseMs: 1, keepMs: retentionMs }, done);
  const copy = await set.one.claims.claim(key, retentionMs);
  assert.ok(copy.kind === 'done');
  assert.deepEqual(copy.done, done);
  await set.quorums[0]!.claims.settled();
  const asked = set.ledger.calls.length;
  assert.equal((await set.two.claims.claim(key, retentionMs)).kind, 'done');
  assert.equal(set.ledger.calls.length, asked, 'they know now');
});

test('held in the ledger alone: the locks are given back, and looking at it asks the ledger', async () => {
  await using set = await start();
  const key = freshKey();
  const lease = { id: key.id, token: 'x', attempt: 1, leaseMs: 60_000, keepMs: retentionMs };
  await set.ledger.take(lease);
  for (const each of [set.one, set.two]) {
    const claim = await each.claims.claim(key, retentionMs);
    assert.ok(claim.kind === 'held' && claim.leftMs > 3_000, 'the lease of the row');
    assert.deepEqual(verdicts(each), ['held'], 'the voters were free again');
  }
  assert.equal((await set.one.claims.peek(key)).kind, 'held');
  await set.ledger.release(lease, false);
  assert.equal((await set.one.claims.peek(key)).kind, 'free');
  assert.equal((await won(set.one, key)).attempt, 2);
});

test('the attempt that the ledger counted is confirmed on the voters', async () => {
  await using set = await start();
  const key = freshKey();
  const row = { id: key.id, token: 'x', attempt: 6, leaseMs: 60_000, keepMs: retentionMs };
  await set.ledger.take(row);
  await set.ledger.release(row, false);
  const lease = await won(set.one, key);
  assert.equal(lease.attempt, 7);
  await set.one.claims.release(lease, true);
  set.ledger.up = false;
  assert.equal((await won(set.two, key)).attempt, 8, 'the voters alone know it too');
});

test('no answer, onDown: proceed: the claim stands, and its completion is written later', async () => {
  await using set = await start();
  set.ledger.up = false;
  const lease = await won(set.one);
  assert.deepEqual([verdicts(set.one), failed(set.one)], [['skipped'], ['take']]);
  assert.equal(await set.one.claims.extend(lease), true);
  await set.one.claims.complete(lease, ok);
  assert.deepEqual(failed(set.one), ['take', 'complete']);
  assert.deepEqual(set.one.events.of('ledgerBehind').at(-1), [1]);
  set.ledger.up = true;
  await set.one.behind.idle();
  assert.deepEqual(set.one.events.of('ledgerBehind').at(-1), [0]);
  const row = await set.ledger.look(lease.key.id);
  assert.ok(typeof row === 'object' && row.done?.status === 200);
});

test('it comes back while an attempt is running: the next beat puts the row there', async () => {
  await using set = await start();
  set.ledger.up = false;
  const lease = await won(set.one);
  set.ledger.up = true;
  await set.one.claims.extend(lease);
  const row = await set.ledger.look(lease.key.id);
  assert.ok(typeof row === 'object' && row.lease && row.attempt === 1);
});

test('no answer, onDown: reject: unavailable, the event is free, and a row that may have been written is taken back', async () => {
  await using set = await start({ onDown: 'reject' });
  const key = freshKey();
  set.ledger.answers = false;
  assert.equal((await set.one.claims.claim(key, retentionMs)).kind, 'unavailable');
  assert.deepEqual(verdicts(set.one), ['refused']);
  set.ledger.answers = true;
  await set.one.behind.idle();
  assert.equal(await set.ledger.look(key.id), 'none');
  assert.equal((await won(set.two, key)).attempt, 1, 'no byte was sent');
});

test('an answer that was lost, onDown: proceed: the row is ours all the same', async () => {
  await using set = await start();
  set.ledger.answers = false;
  const lease = await won(set.one);
  set.ledger.answers = true;
  await set.one.claims.complete(lease, ok);
  const row = await set.ledger.look(lease.key.id);
  assert.ok(typeof row === 'object' && row.done && row.attempt === 1);
});

test('a completion takes the place of a release that waits; of one event there is one row to write', async () => {
  await using set = await start();
  const lease = { id: freshKey().id, token: 'x', attempt: 1, leaseMs: 1, keepMs: retentionMs };
  set.ledger.up = false;
  set.one.behind.add({ kind: 'release', lease, takeBack: false });
  set.one.behind.add({ kind: 'complete', lease, done });
  set.one.behind.add({ kind: 'release', lease, takeBack: true });
  assert.deepEqual(set.one.events.of('ledgerBehind').at(-1), [1]);
  set.ledger.up = true;
  await set.one.behind.idle();
  const row = await set.ledger.look(lease.id);
  assert.ok(typeof row === 'object' && row.done);
});

test('more rows than the list takes: the oldest are dropped, and said to be', async () => {
  await using set = await start();
  set.ledger.up = false;
  const [first, ...others] = Array.from({ length: 5_003 }, () => freshKey().id);
  const reply = { contentType: undefined, body: Buffer.from('kept?') };
  for (const id of [first!, ...others])
    set.one.behind.add({
      kind: 'complete',
      lease: { id, token: 'x', attempt: 1, leaseMs: 1, keepMs: retentionMs },
      done: { ...done, reply },
    });
  assert.equal(set.one.events.of('ledgerDropped').length, 3);
  set.ledger.up = true;
  await set.one.behind.idle();
  assert.equal(await set.ledger.look(first!), 'none');
  const last = await set.ledger.look(others.at(-1)!);
  assert.ok(typeof last === 'object' && last.done?.reply === 'omitted', 'replies are left out where many wait');
});
