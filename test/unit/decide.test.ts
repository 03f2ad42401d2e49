/** The rules of a claim round in their order, and what no set of votes may ever bring about. */
import * as fc from 'fast-check';
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { decide, liveDone, quorumOf, type Decision, type Vote, type VoterList } from '../../src/redis/decide.ts';

type Given = Exclude<Vote, undefined>;

const ok = (attempt = 1, floor = 0): Given => ({ status: 'ok', counted: true, attempt, floor });
const uncounted = (attempt = 1): Given => ({ status: 'ok', counted: false, attempt, floor: 0 });
const held = (token: string, leftMs = 100, unknown = false, floor = 0): Given => ({
  status: 'held',
  token,
  unknown,
  leftMs,
  floor,
});
const done = (attempt = 1, floor = 0): Given => ({
  status: 'done',
  attempt,
  floor,
  content: `by ${attempt}`,
  leftMs: 5,
});
const error: Given = { status: 'error', message: 'timeout' };
const noMarker: Given = { status: 'no-marker' };
const none = undefined;

function say(decision: Decision): string {
  switch (decision.kind) {
    case 'won':
      return `won ${decision.attempt}`;
    case 'done':
      return `done ${decision.done.attempt}`;
    case 'held':
      return `held ${decision.leftMs}${decision.unknown ? ' unknown' : ''}`;
    case 'undecided':
      return `undecided ${decision.leftMs}`;
    case 'pending':
    case 'unavailable':
      return decision.kind;
  }
}

const table: readonly (readonly [votes: readonly Vote[], expected: string])[] = [
  // 1. done, once a quorum has answered or nothing more can come.
  [[done(), none, none], 'pending'],
  [[done(), error, none], 'pending'],
  [[done(), error, error], 'done 1'],
  [[done(), noMarker, error], 'done 1'],
  [[done(), ok(), none], 'done 1'],
  [[done(), ok(2), ok(2)], 'done 1'],
  [[done(), held('B'), held('B')], 'done 1'],
  [[done(1), done(3), none], 'done 3'],
  [[done(1), none, none, none, none], 'pending'],
  [[done(1), ok(), none, none, none], 'pending'],
  [[done(1), ok(), uncounted(), none, none], 'done 1'],
  // …unless any answer shows that it was forgotten: then it votes for nobody.
  [[done(1), ok(2, 1), ok(2, 1)], 'won 2'],
  [[done(1, 1), held('B', 9), held('B', 9)], 'held 9'],
  [[done(1), ok(2, 1), error], 'unavailable'],
  [[done(1), held('B', 9, false, 1), none], 'pending'],
  [[done(2), ok(2, 1), ok(2, 1)], 'done 2'],
  [[done(1), done(2), ok(2, 1)], 'done 2'],
  [[done(1), { status: 'forgotten', floor: 1 }, error], 'unavailable'],
  [[done(1), { status: 'lost', floor: 1 }, error], 'unavailable'],
  // 2. a quorum of counted oks; the attempt is the highest among all oks.
  [[ok(), ok(), none], 'won 1'],
  [[ok(), ok(), error], 'won 1'],
  [[ok(), ok(), held('B')], 'won 1'],
  [[ok(1), ok(4), uncounted(7)], 'won 7'],
  [[ok(), uncounted(), none], 'pending'],
  [[ok(), ok(), none, none, none], 'pending'],
  [[ok(), ok(), ok(), none, none], 'won 1'],
  [[ok()], 'won 1'],
  [[uncounted()], 'unavailable'],
  // 3. one token of another on a quorum.
  [[held('B', 70), held('B', 90), none], 'held 90'],
  [[held('B', 70), held('B', 90, true), ok()], 'held 90 unknown'],
  [[held('B'), held('C'), none], 'pending'],
  [[held('B', 7)], 'held 7'],
  // 4. too few that gave a counted ok or a held.
  [[error, error, none], 'unavailable'],
  [[error, error, ok()], 'unavailable'],
  [[error, error, held('B')], 'unavailable'],
  [[uncounted(), uncounted(), none], 'unavailable'],
  [[uncounted(), uncounted(), uncounted()], 'unavailable'],
  [[noMarker, noMarker, ok()], 'unavailable'],
  [[error, none, none], 'pending'],
  [[error, error, none, none, none], 'pending'],
  [[error, error, error, none, none], 'unavailable'],
  // 5. anything else: a split vote, or an owner whose second voter has just died.
  [[ok(), held('B', 60), error], 'undecided 60'],
  [[held('B', 60), held('C', 80), error], 'undecided 60'],
  [[ok(), held('B'), held('C')], 'undecided 100'],
  [[uncounted(), ok(), held('B', 60)], 'undecided 60'],
  [[ok(), ok(), held('B'), held('B'), error], 'undecided 100'],
  [[ok(), ok(), held('B'), held('C'), none], 'pending'],
  [[ok(), held('B'), held('C'), held('D'), none], 'undecided 100'],
  [[held('B', 50), held('B', 60), held('C', 99), ok(), error], 'undecided 60'],
  [[none, none, none], 'pending'],
];

function write(votes: readonly Vote[]): string {
  return votes
    .map((vote) => {
      if (vote === undefined) return '·';
      const fields = Object.entries(vote).filter(([name]) => !['status', 'message', 'content'].includes(name));
      return `${vote.status}(${fields.map(([, value]) => String(value)).join(' ')})`;
    })
    .join(' ');
}

for (const [votes, expected] of table) {
  test(`${write(votes)} → ${expected}`, () => assert.equal(say(decide(votes)), expected));
}

test('quorum is more than half', () => {
  assert.deepEqual([1, 2, 3, 4, 5, 7].map(quorumOf), [1, 2, 2, 3, 3, 4]);
});

test('B54: held elsewhere, out of reach and split are three different things', () => {
  assert.equal(decide([held('B'), held('B'), held('B')]).kind, 'held');
  assert.equal(decide([error, error, error]).kind, 'unavailable');
  assert.equal(decide([held('B'), error, ok()]).kind, 'undecided');
});

const answer: fc.Arbitrary<Given> = fc.oneof(
  fc.record({
    status: fc.constant('ok'),
    counted: fc.boolean(),
    attempt: fc.integer({ min: 1, max: 4 }),
    floor: fc.nat({ max: 2 }),
  }),
  fc.record({
    status: fc.constant('held'),
    token: fc.constantFrom('B', 'C'),
    unknown: fc.boolean(),
    leftMs: fc.nat({ max: 99 }),
    floor: fc.nat({ max: 2 }),
  }),
  fc.record({
    status: fc.constant('done'),
    attempt: fc.integer({ min: 1, max: 4 }),
    floor: fc.nat({ max: 2 }),
    content: fc.constant('x'),
    leftMs: fc.constant(9),
  }),
  fc.constant(error),
  fc.constant(noMarker),
);
const full = fc.constantFrom(1, 3, 5, 7).chain((n) => fc.array(answer, { minLength: n, maxLength: n }));

test('with all votes in there is a decision', () => {
  fc.assert(fc.property(full, (votes) => decide(votes).kind !== 'pending'));
});

test('the order of the voters decides nothing', () => {
  fc.assert(
    fc.property(full, fc.infiniteStream(fc.nat()), (votes, draw) => {
      const mixed = [...votes];
      for (let i = mixed.length - 1; i > 0; i -= 1) {
        const j = Number(draw.next().value) % (i + 1);
        [mixed[i], mixed[j]] = [mixed[j]!, mixed[i]!];
      }
      assert.equal(decide(mixed).kind, decide(votes).kind);
    }),
  );
});

test('won, held and done each rest on a quorum that the others cannot have', () => {
  fc.assert(
    fc.property(full, (votes) => {
      const quorum = quorumOf(votes.length);
      const oks = votes.filter((vote) => vote.status === 'ok' && vote.counted).length;
      const holds = (token: string): number =>
        votes.filter((vote) => vote.status === 'held' && vote.token === token).length;
      const { kind } = decide(votes);
      if (kind === 'won') assert.ok(oks >= quorum && holds('B') < quorum && holds('C') < quorum);
      if (kind === 'held') assert.ok(oks < quorum && (holds('B') >= quorum || holds('C') >= quorum));
      if (kind === 'unavailable') assert.ok(oks + holds('B') + holds('C') < quorum);
      assert.equal(kind === 'done', liveDone(votes) !== undefined);
    }),
  );
});

test('two owners of one lock can never both be told that they won', () => {
  // What two claimers see of the same voters: where one has the lock, the other is told so.
  const owners = fc
    .constantFrom(1, 3, 5, 7)
    .chain((n) => fc.array(fc.constantFrom('B', 'C', 'nobody'), { minLength: n, maxLength: n }));
  const seenBy = (me: string) => (owner: string) => (owner === me ? ok() : owner === 'nobody' ? error : held(owner));
  fc.assert(
    fc.property(owners, (held_) => {
      const kinds = ['B', 'C'].map((me) => decide(held_.map(seenBy(me))).kind);
      assert.notDeepEqual(kinds, ['won', 'won']);
      if (kinds.includes('won') && !held_.includes('nobody')) assert.ok(kinds.includes('held'));
    }),
  );
});

test('votes that come after the decision never make another of won, held and unavailable of it', () => {
  fc.assert(
    fc.property(full, fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }), (votes, late) => {
      const early = decide(votes.map((vote, index) => (late[index] ? undefined : vote))).kind;
      const final = decide(votes).kind;
      if (early === 'pending' || early === final) return;
      // Later votes may still show that the event is done, or that a done one was forgotten; a split whose last
      // voter turns out to be dead as well would have been out of reach: neither was won, and both come again.
      const sameEnd = early === 'undecided' && final === 'unavailable';
      assert.ok(final === 'done' || early === 'done' || sameEnd, `${early} became ${final}`);
    }),
  );
});

suite('while the set of voters changes', () => {
  /** Places 0–2 are the new voters, 3–5 the old ones. */
  const lists: readonly VoterList[] = [
    { places: [0, 1, 2], young: true },
    { places: [3, 4, 5], young: false },
  ];
  const learner = { ...ok(), counted: false, learning: true } as Vote;
  const of = (fresh: readonly Vote[], old: readonly Vote[]): string => decide([...fresh, ...old], lists).kind;
  const oks = [ok(), ok(), ok()];

  test('a claim needs a majority of both lists', () => {
    assert.equal(of(oks, oks), 'won');
    assert.equal(of([ok(), ok(), error], [error, ok(), ok()]), 'won');
    assert.equal(of(oks, [ok(), error, error]), 'unavailable');
    assert.equal(of([ok(), error, error], oks), 'unavailable');
    assert.equal(of(oks, [ok(), undefined, error]), 'pending');
  });

  test('new voters that all learn will do, and no mixture of those that learn with those that count', () => {
    assert.equal(of([learner, learner, error], oks), 'won');
    assert.equal(of([learner, learner, ok()], oks), 'won');
    assert.equal(of([learner, ok(), error], oks), 'undecided');
    assert.equal(of(oks, [learner, learner, learner]), 'unavailable', 'the old ones must count');
  });

  test('a token is an owner with a majority of both lists; with one, it is looked at once more', () => {
    const [b, c] = [held('B'), held('C')];
    assert.equal(of([b, b, b], [b, b, b]), 'held');
    assert.equal(of([b, b, ok()], [b, b, error]), 'held');
    assert.deepEqual(
      [decide([b, b, b, ...oks], lists), decide([...oks, c, c, ok()], lists)].map((decision) =>
        decision.kind === 'undecided' ? decision.holder : decision.kind,
      ),
      ['B', 'C'],
    );
    assert.equal(of([b, b, b], [c, c, c]), 'undecided');
    assert.equal(of([b, b, b], [undefined, undefined, error]), 'pending');
  });

  test('done of either list counts', () => {
    assert.equal(of([error, ok(), done()], oks), 'done');
    assert.equal(of(oks, [done(), ok(), error]), 'done');
    assert.equal(of([done(), undefined, undefined], oks), 'pending', 'a floor may still make it void');
  });

  test('whoever knows one list, and whoever knows both, never both win', () => {
    const places = [0, 1, 2, 3, 4, 5];
    fc.assert(
      fc.property(fc.array(fc.constantFrom('one', 'both', 'none'), { minLength: 6, maxLength: 6 }), (owners) => {
        const seenBy = (me: string): Vote[] =>
          places.map((place) => (owners[place] === me ? ok() : owners[place] === 'none' ? error : held('other')));
        const both = decide(seenBy('both'), lists).kind;
        for (const own of [seenBy('one').slice(0, 3), seenBy('one').slice(3)])
          assert.ok(both !== 'won' || decide(own).kind !== 'won');
      }),
    );
  });
});
