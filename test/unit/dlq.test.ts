/** `hookonce dlq …` over a queue in memory: what is asked wrongly, and what is said. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DoneView } from '../../src/core/operator.ts';
import { workKey } from '../../src/core/work-key.ts';
import { dlq, type AskedOfDlq, type SaidOfDlq } from '../../src/operator/dlq.ts';
import { record, sample } from '../queue/queue-suite.ts';
import { FakeQueue, FakeQueueStore } from '../support/fake-queue.ts';
import { ManualClock } from '../support/manual-clock.ts';

const nothing: Omit<AskedOfDlq, 'words'> = {
  ...{ route: undefined, status: undefined, key: undefined, limit: undefined },
  ...{ all: false, force: false, json: false, body: false },
};

/** `count` dead letters, of which those whose key is among `done` have been done since. */
async function office(count: number, done: readonly string[] = []) {
  const clock = new ManualClock();
  const queue = new FakeQueue(new FakeQueueStore(), clock);
  queue.work(async ({ attempt, replay }) => (replay ? { kind: 'done' } : { kind: 'dead', attempt: record(attempt) }));
  const keys = Array.from({ length: count }, (_, n) => `key-of-event-number-${String(n).padStart(2, '0')}`);
  for (const [n, key] of keys.entries())
    await queue.enqueue(sample({ key, route: n % 2 === 0 ? 'even' : 'odd', body: Buffer.from([n, 255]) }));
  await clock.advance(1);
  const halves = new Set(done.map((key) => workKey({ id: key } as Parameters<typeof workKey>[0]).id));
  const view: DoneView = { status: 200, wallMs: clock.wall(), traceId: '' };
  const operator = {
    explain: async ({ id }: { id: string }) => ({
      voters: [],
      forecast: halves.has(id)
        ? ({ kind: 'duplicate', attempt: 2, ...view } as const)
        : ({ kind: 'forwarded', attempt: 2 } as const),
    }),
  };
  const steps: [number, number][] = [];
  let connections = 0;
  const ask = async (words: readonly string[], more: Partial<AskedOfDlq> = {}): Promise<SaidOfDlq> =>
    await dlq(
      { ...nothing, words, ...more },
      async () => {
        connections += 1;
        return { letters: queue, operator, [Symbol.asyncDispose]: async () => undefined };
      },
      (...step) => void steps.push(step),
    );
  return { queue, ask, steps, keys, connections: () => connections, ids: async () => await queue.ids() };
}

test('asked wrongly: said so, and nobody is connected to', async () => {
  const { ask, connections } = await office(1);
  const wrong: [readonly string[], Partial<AskedOfDlq>?][] = [
    [[]],
    [['lost']],
    [['list', 'one']],
    [['list'], { all: true }],
    [['list'], { status: 'many' }],
    [['list'], { limit: '-1' }],
    [['list'], { body: true }],
    [['show']],
    [['show', 'one', 'two']],
    [['show', 'one'], { route: 'even' }],
    [['replay']],
    [['replay', 'one'], { all: true }],
    [['replay', 'one'], { route: 'even' }],
    [['replay', 'one'], { limit: '3' }],
    [['discard']],
    [['discard', 'one'], { force: true }],
  ];
  for (const [words, more] of wrong) assert.equal((await ask(words, more)).code, 2, JSON.stringify([words, more]));
  assert.equal(connections(), 0);
});

test('listed, by route and by key, with an end where it is asked for', async () => {
  const { ask, keys } = await office(5);
  assert.match((await ask(['list'])).text, /5 of 5 dead letters\./);
  assert.match((await ask(['list'], { route: 'odd' })).text, /2 of 5 dead letters\./);
  assert.match((await ask(['list'], { limit: '3' })).text, /3 of 5 dead letters; there are more\./);
  assert.match((await ask(['list'], { route: 'other' })).text, /None of 5/);
  const { letters } = JSON.parse((await ask(['list'], { key: keys[3]!, json: true })).text) as { letters: object[] };
  assert.deepEqual(letters.length, 1);
  assert.doesNotMatch(JSON.stringify(letters), /header|body/i);
});

test('shown: bytes that are no text are counted, and come whole with --body', async () => {
  const { ask, ids } = await office(1);
  const [id] = await ids();
  assert.match((await ask(['show', id!])).text, /2 bytes that are no text/);
  assert.deepEqual((await ask(['show', id!], { body: true })).raw, Buffer.from([0, 255]));
  assert.equal((await ask(['show', 'lost'])).code, 1);
});

test('replayed by id: each is told; one that has been done since is not, unless it is forced', async () => {
  const { ask, ids } = await office(3, ['key-of-event-number-01']);
  const all = await ids();
  const said = await ask(['replay', ...all, 'lost']);
  assert.equal(said.code, 1);
  assert.match(said.text, new RegExp(`${all[0]}: back in the queue`));
  assert.match(said.text, new RegExp(`${all[1]}: not replayed\\. The event has been done since.*With force`));
  assert.match(said.text, /lost: no dead letter/);
  assert.deepEqual(await ids(), [all[1]]);
  const forced = await ask(['replay', all[1]!], { force: true });
  assert.deepEqual([forced.code, await ids()], [0, []]);
});

test('many: counted, with progress to the end; those done since are left', async () => {
  const { ask, ids, steps } = await office(20, ['key-of-event-number-04', 'key-of-event-number-05']);
  const said = await ask(['replay'], { route: 'even' });
  assert.deepEqual(said, {
    code: 1,
    text: '9 replayed; 1 not replayed: done since (with force they are done once more).',
  });
  assert.deepEqual(steps.at(-1), [20, 20]);
  assert.equal((await ids()).length, 11);
  assert.deepEqual(await ask(['discard'], { all: true }), { code: 0, text: '11 discarded.' });
  assert.deepEqual(await ask(['discard'], { all: true }), { code: 0, text: 'Nothing to do.' });
});
