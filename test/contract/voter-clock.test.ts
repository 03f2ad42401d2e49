/** A voter to the millisecond: a link that a test answers by hand, and a clock that it moves. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import type { Answer, BatchAnswer, Item } from '../../src/redis/items.ts';
import { LinkError, type Link, type Page } from '../../src/redis/link.ts';
import { Voter } from '../../src/redis/voter.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { recordedEvents, type RecordedEvents } from '../support/recorded-events.ts';
import { say } from '../support/raw-voter.ts';

const timeoutMs = 100;
const claim = (id: string, token = 'A'): Item & { op: 'claim' } => ({
  op: 'claim',
  id: id.padEnd(22, '_'),
  token,
  lockMs: 1,
  recordMs: 1,
});

/** Keeps every batch until it is answered; greetings are answered at once, unless told otherwise. */
class HandLink implements Link {
  readonly sent: (PromiseWithResolvers<BatchAnswer> & { readonly items: readonly Item[] })[] = [];
  readonly loads: PromiseWithResolvers<void>[] = [];
  boot = 'n1';
  greets = true;
  #changed: (up: boolean) => void = () => {};

  run(items: readonly Item[]): Promise<BatchAnswer> {
    if (this.greets && items.every((item) => item.op === 'hello')) {
      return Promise.resolve({
        boot: this.boot,
        held: false,
        answers: items.map(() => ({ status: 'hello', hold: '', leftMs: 0, lostWallMs: 0 })),
      });
    }
    const batch = { ...Promise.withResolvers<BatchAnswer>(), items };
    this.sent.push(batch);
    return batch.promise;
  }

  load(): Promise<void> {
    const load = Promise.withResolvers<void>();
    this.loads.push(load);
    return load.promise;
  }

  async scan(): Promise<Page> {
    return { cursor: '0', ids: [] };
  }

  onChange(changed: (up: boolean) => void): void {
    this.#changed = changed;
    changed(true);
  }

  change(up: boolean): void {
    this.#changed(up);
  }

  async close(): Promise<void> {
    this.change(false);
    for (const batch of this.sent) batch.reject(new LinkError('disconnected'));
  }

  answer(index: number, ...answers: readonly Answer[]): void {
    const { items, resolve } = this.sent[index]!;
    const granted: Answer = { status: 'ok', counted: true, attempt: 1, floor: 0 };
    resolve({ boot: this.boot, held: false, answers: answers.length > 0 ? answers : items.map(() => granted) });
  }

  refuse(index: number, why: string): void {
    this.sent[index]!.reject(new LinkError(why));
  }
}

let clock: ManualClock;
let link: HandLink;
let events: RecordedEvents;
let voter: Voter;
beforeEach(async () => {
  clock = new ManualClock();
  link = new HandLink();
  events = recordedEvents();
  let nonces = 0;
  const options = { name: 'lock-0', timeoutMs, lifeMs: 1_000, lanes: 'one', nonce: () => `n${(nonces += 1)}` } as const;
  voter = new Voter(link, options, clock, events);
  await clock.settle();
  assert.ok(voter.eligible);
});
afterEach(async () => {
  await voter[Symbol.asyncDispose]();
  await clock.settle();
  assert.equal(clock.pending, 0, 'no timer is left');
});

/** Asks, and keeps what came of it in words. */
function ask(item: Parameters<Voter['ask']>[0]): { said: string | undefined } {
  const asked: { said: string | undefined } = { said: undefined };
  void voter.ask(item).then((reply) => void (asked.said = say(reply)));
  return asked;
}

function classes(): string[] {
  return events.of('voterError').map(([, why]) => why);
}

test('silence ends at the deadline, neither sooner nor later; a late answer is not taken', async () => {
  const asked = ask(claim('a'));
  await clock.advance(timeoutMs - 1);
  assert.equal(asked.said, undefined);
  await clock.advance(1);
  assert.equal(asked.said, 'error timeout');
  link.answer(0);
  await clock.settle();
  assert.equal(asked.said, 'error timeout');
  assert.deepEqual(classes(), ['timeout']);
});

test('an answer takes the deadline with it, and tells how long it took', async () => {
  const asked = ask(claim('a'));
  await clock.advance(30);
  link.answer(0);
  await clock.settle();
  assert.equal(asked.said, 'ok 1,0');
  assert.deepEqual(events.of('voterCommand').at(-1), ['lock-0', 30]);
  assert.equal(clock.pending, 1, 'the next probe');
});

test('an answer that has arrived by the deadline is read, however busy the event loop is', async () => {
  const asked = ask(claim('a'));
  await clock.settle();
  // Timers come before sockets: the answer is there when the deadline's timer fires, and is read after it.
  const soon = clock.soon.bind(clock);
  clock.soon = (fn) => {
    link.answer(0);
    soon(fn);
  };
  await clock.advance(timeoutMs);
  assert.equal(asked.said, 'ok 1,0');
  assert.deepEqual(classes(), []);
  assert.ok(voter.eligible);
});

test('the time before a batch is sent is not held against the voter', async () => {
  const asked = ask(claim('a'));
  await Promise.resolve();
  clock.skip(10 * timeoutMs);
  await clock.advance(timeoutMs - 1);
  assert.equal(asked.said, undefined);
  link.answer(0);
  await clock.settle();
  assert.equal(asked.said, 'ok 1,0');
});

test('a client that gives up at the same deadline counts as one silence', async () => {
  const asked = ask(claim('a'));
  await clock.advance(timeoutMs);
  link.refuse(0, 'timeout');
  await clock.settle();
  assert.equal(asked.said, 'error timeout');
  assert.deepEqual(classes(), ['timeout']);
});

test('three silences in a row: skipped; an answer in between begins the row anew', async () => {
  for (let i = 0; i < 2; i += 1) {
    ask(claim('a'));
    await clock.advance(timeoutMs);
  }
  ask(claim('b'));
  await clock.settle();
  link.answer(2);
  await clock.settle();
  for (let i = 0; i < 2; i += 1) {
    ask(claim('a'));
    await clock.advance(timeoutMs);
  }
  assert.ok(voter.eligible);
  ask(claim('a'));
  await clock.advance(timeoutMs);
  assert.ok(!voter.eligible);
  const skipped = ask(claim('a'));
  await clock.settle();
  assert.equal(skipped.said, 'error skipped');
  await clock.advance(2_000);
  assert.ok(voter.eligible, 'the probe was answered');
});

test('an answer after the deadline does not end the row: one that is always too late costs as much as silence', async () => {
  for (let i = 0; i < 3; i += 1) {
    ask(claim('a'));
    await clock.advance(timeoutMs);
  }
  assert.ok(!voter.eligible);
  link.answer(0);
  await clock.settle();
  assert.ok(!voter.eligible);
});

test('NOSCRIPT: loaded once, sent again in order before what was asked later', async () => {
  ask(claim('a'));
  await clock.settle();
  ask(claim('b'));
  await clock.settle();
  link.refuse(0, 'noscript');
  await clock.settle();
  ask(claim('c'));
  link.refuse(1, 'noscript');
  await clock.settle();
  assert.deepEqual([link.loads.length, link.sent.length], [1, 2], 'nothing is sent while the script is loaded');
  link.loads[0]!.resolve();
  await clock.settle();
  assert.deepEqual(
    link.sent[2]!.items.map((item) => 'id' in item && item.id[0]),
    ['a', 'b', 'c'],
  );
  link.answer(2);
  await clock.advance(timeoutMs);
});

test('NOSCRIPT a second time is an error: it is sent again once', async () => {
  const asked = ask(claim('a'));
  await clock.settle();
  link.refuse(0, 'noscript');
  await clock.settle();
  link.loads[0]!.resolve();
  await clock.settle();
  link.refuse(1, 'noscript');
  await clock.settle();
  assert.equal(asked.said, 'error noscript');
  assert.equal(link.loads.length, 1);
  await clock.advance(timeoutMs);
});

test('NOSCRIPT and a load that is not answered in time: everything ends at its own deadline', async () => {
  const first = ask(claim('a'));
  await clock.advance(40);
  link.refuse(0, 'noscript');
  await clock.settle();
  const second = ask(claim('b'));
  await clock.advance(60);
  assert.deepEqual([first.said, second.said], ['error timeout', undefined]);
  await clock.advance(40);
  link.loads[0]!.reject(new Error('Command timed out'));
  await clock.advance(0);
  assert.equal(second.said, 'error timeout');
  assert.ok(
    link.sent.slice(1).every(({ items }) => items.every((item) => 'id' in item && item.id[0] === 'b')),
    'the first was given up',
  );
});

test('NOSCRIPT and a load that is refused: told, and the items end as errors', async () => {
  const asked = ask(claim('a'));
  await clock.settle();
  link.refuse(0, 'noscript');
  await clock.settle();
  link.loads[0]!.reject(new Error('NOPERM'));
  await clock.settle();
  link.refuse(1, 'noscript');
  await clock.settle();
  assert.equal(asked.said, 'error noscript');
  await clock.advance(timeoutMs);
});

test('no marker: greeted anew at once, and not asked before that is answered', async () => {
  const asked = ask(claim('a'));
  await clock.settle();
  link.boot = '';
  link.greets = false;
  link.answer(0, { status: 'no-marker' });
  await clock.settle();
  assert.equal(asked.said, 'no-marker');
  assert.ok(!voter.eligible);
  assert.deepEqual(
    link.sent[1]!.items.map((item) => item.op),
    ['hello'],
  );
  link.boot = 'n9';
  link.answer(1, { status: 'hello', hold: 'records', leftMs: -1, lostWallMs: 0 });
  await clock.settle();
  assert.ok(voter.eligible);
});

test('a greeting that fails is repeated every two seconds, and not in a loop', async () => {
  link.greets = false;
  link.change(false);
  link.change(true);
  for (let i = 0; i < 5; i += 1) {
    await clock.settle();
    link.boot = '';
    link.answer(i, { status: 'error', message: 'OOM command not allowed' });
    await clock.advance(2_000);
  }
  assert.equal(link.sent.length, 6);
  assert.ok(!voter.eligible);
});

test('a link that goes down: at once errors, and eligible again only after a greeting', async () => {
  const asked = ask(claim('a'));
  await clock.settle();
  link.change(false);
  link.refuse(0, 'disconnected');
  const later = ask(claim('b'));
  await clock.settle();
  assert.deepEqual([asked.said, later.said], ['error disconnected', 'error down']);
  link.greets = false;
  link.change(true);
  await clock.settle();
  assert.ok(!voter.eligible);
  link.answer(1, { status: 'hello', hold: '', leftMs: 0, lostWallMs: 0 });
  await clock.settle();
  assert.ok(voter.eligible);
  assert.deepEqual(
    events
      .of('voterState')
      .map(([, state]) => state)
      .slice(-3),
    ['up', 'down', 'up'],
  );
});

test('ends in the middle of everything: what was asked is answered', async () => {
  const sent = ask(claim('a'));
  await clock.settle();
  const queued = ask(claim('b'));
  await voter[Symbol.asyncDispose]();
  await clock.settle();
  assert.equal(sent.said, 'error disconnected');
  await clock.advance(timeoutMs);
  assert.match(queued.said ?? '', /^error/);
});
