/**
 * The rules of the protocol, each with what the code looks like without it, and the kind of runs in which it shows
 * soonest. A mutation that is found within `quickly` runs is part of `npm test`; the others are hunted by
 * `npm run simulate -- --mutations`, and docs/simulation.md says after how many runs they were found.
 */
import type { Patch } from './patch.ts';

export interface Mutation {
  readonly name: string;
  /** Where the rule stands in the protocol. */
  readonly rule: string;
  readonly patches: readonly Patch[];
  /** Taken out of the world rather than of the code: connections deliver in order. */
  readonly unordered?: true;
  readonly voters: 3 | 5;
  readonly profile?: string;
  /** Found within so many runs in tests; undefined: too rare for them. */
  readonly quickly?: number;
  /** Where it was found last. Tests begin there: it is looked for only when schedules have changed. */
  readonly seed?: number;
  /** Why nothing is broken without it. */
  readonly belt?: string;
}

export function mutationCalled(name: string | undefined): Mutation | undefined {
  if (name === undefined) return undefined;
  const found = MUTATIONS.find((mutation) => mutation.name === name);
  if (found === undefined) throw new Error(`no rule is called ${name}`);
  return found;
}

const model = 'src/redis/model.ts';
const claims = 'src/redis/claims.ts';

export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'confirm skipped',
    rule: '2 confirm',
    voters: 3,
    profile: 'taking turns',
    quickly: 1500,
    seed: 28,
    patches: [{ file: claims, find: 'decision.attempt > 1 ?', put: 'decision.attempt > Infinity ?' }],
  },
  {
    name: 'confirm without the lock',
    rule: '2 confirm: lock not ours → fails',
    voters: 3,
    belt: 'whose lock has run out does not begin: validity is checked when the claim is won and at the first byte',
    patches: [
      {
        file: model,
        find: "case 'confirm': { if (record?.done) return done(); if (!ours) return { status: 'lost', floor: rec.floor };",
        put: "case 'confirm': { if (record?.done) return done(); if (!ours) { rec.attempt = Math.max(rec.attempt, item.attempt); open(now + item.recordMs); return ok(counted); }",
      },
    ],
  },
  {
    name: 'confirm does not look for done',
    rule: '2 confirm: done → a duplicate after all',
    voters: 3,
    profile: 'straddling',
    quickly: 1500,
    seed: 263,
    patches: [
      {
        file: model,
        find: "case 'confirm': { if (record?.done) return done();",
        put: "case 'confirm': { if (record?.done) return ok(counted);",
      },
    ],
  },
  {
    name: 'confirm does not raise the record',
    rule: '2 confirm: attempt := max(attempt, given)',
    voters: 3,
    profile: 'taking turns',
    quickly: 1500,
    seed: 28,
    patches: [
      {
        file: model,
        find: "if (!ours) return { status: 'lost', floor: rec.floor }; rec.attempt = Math.max(rec.attempt, item.attempt); open(",
        put: "if (!ours) return { status: 'lost', floor: rec.floor }; open(",
      },
    ],
  },
  {
    name: 'release of the lock of another',
    rule: '2 release: only if the lock is ours',
    voters: 3,
    quickly: 1500,
    seed: 2,
    patches: [
      {
        file: model,
        find: "case 'release': { if (!ours) return { status: 'lost', floor: rec.floor };",
        put: "case 'release': { if (!ours) { this.#put(item.id, { lock: undefined }); return { status: 'lost', floor: rec.floor }; }",
      },
    ],
  },
  {
    name: 'taken back after bytes were sent',
    rule: '2 release: no byte was sent',
    voters: 3,
    quickly: 1500,
    seed: 1,
    patches: [{ file: claims, find: 'ballot.takeBack = !sent;', put: 'ballot.takeBack = true;' }],
  },
  {
    name: 'taken back without the lock',
    rule: '2 release: own lock',
    voters: 3,
    quickly: 1500,
    seed: 2,
    patches: [
      {
        file: model,
        find: "case 'release': { if (!ours) return { status: 'lost', floor: rec.floor };",
        put: "case 'release': { if (!ours) { if (item.takeBack && record && !record.done && rec.attempt > 0) { rec.attempt -= 1; open(record.untilMs); } return { status: 'lost', floor: rec.floor }; }",
      },
    ],
  },
  {
    name: 'taken back whatever the record says',
    rule: '2 release: exactly the number this claim wrote (second belt)',
    voters: 3,
    belt: 'nobody else writes an attempt while the lock is ours; what is learnt meanwhile, others know too',
    patches: [{ file: model, find: '&& rec.attempt === ours.attempt', put: '' }],
  },
  {
    name: 'taken back where it was not counted',
    rule: '2 release: this voter counted the claim',
    voters: 3,
    profile: 'relearnt',
    quickly: 1500,
    seed: 99,
    patches: [{ file: model, find: 'item.takeBack && ours.counted &&', put: 'item.takeBack &&' }],
  },
  {
    name: 'extend without the lock',
    rule: '2 extend: only if the lock is ours',
    voters: 3,
    profile: 'asleep',
    quickly: 1500,
    seed: 26,
    patches: [
      {
        file: model,
        find: "case 'extend': { if (!ours) return { status: 'lost', floor: rec.floor }; this.#put(item.id, { lock: { ...ours, unknown: ours.unknown ||",
        put: "case 'extend': { this.#put(item.id, { lock: { token: item.token, attempt: 0, counted, unknown:",
      },
      {
        file: model,
        find: "return ok(ours.counted && counted); } case 'heal'",
        put: "return ok(counted); } case 'heal'",
      },
    ],
  },
  {
    name: 'same token for every round',
    rule: '3.5 a fresh token',
    voters: 3,
    profile: 'contended',
    quickly: 1500,
    seed: 56,
    patches: [
      { file: claims, find: 'for (;;) { const startedMs', put: 'const same = {}; for (;;) { const startedMs' },
      {
        file: claims,
        find: 'const { ballot, verdict } =',
        put: 'globalThis.claimUnderWay = same; const { ballot, verdict } =',
      },
    ],
  },
  {
    name: 'oks of voters on hold counted',
    rule: '2 claim: ok, not counted',
    voters: 3,
    profile: 'everything',
    quickly: 1500,
    seed: 77,
    patches: [
      { file: 'src/redis/decide.ts', find: 'if (vote.counted) counted += 1; else', put: 'counted += 1;' },
      {
        file: 'src/redis/ballots.ts',
        find: 'if (reply.counted ? voter.counts(reply, id) : this.#lists && voter.isLearning(reply, id))',
        put: 'if (reply.attempt > 0)',
      },
    ],
  },
  {
    name: 'boots not compared',
    rule: '2 an acknowledgement counts only for the boot that gave it',
    voters: 3,
    profile: 'long ago',
    belt: 'a voter that has started anew is on hold, and what it said before does not count for that alone',
    patches: [
      {
        file: 'src/redis/voter.ts',
        find: "this.#hold === '' && reply.boot !== '' && reply.boot === this.#boots.get(this.#lane(id))",
        put: "this.#hold === '' && reply.boot !== '' && id !== ''",
      },
    ],
  },
  {
    name: 'acknowledgements outlive the memory of the voter',
    rule: '2 an acknowledgement counts only for the boot that gave it',
    voters: 3,
    profile: 'long ago',
    quickly: 1500,
    seed: 2,
    patches: [
      {
        file: 'src/redis/voter.ts',
        find: "this.#hold === '' && reply.boot !== '' && reply.boot === this.#boots.get(this.#lane(id))",
        put: "reply.boot !== '' && id !== ''",
      },
      {
        file: 'src/redis/settling.ts',
        find: 'ack.counted && this.#voters[index]!.eligible',
        put: 'ack.counted',
      },
    ],
  },
  {
    name: 'no heal',
    rule: '4 watchdog heals',
    voters: 3,
    profile: 'rolling',
    quickly: 1500,
    seed: 1,
    patches: [{ file: claims, find: "!== 'lost' || lease.ballot.over) return;", put: "!== 'never') return;" }],
  },
  {
    name: 'heal after the release',
    rule: '4 a lock that was given up is not put back',
    voters: 3,
    profile: 'at the beat',
    quickly: 1500,
    seed: 29,
    patches: [{ file: claims, find: "!== 'lost' || lease.ballot.over) return;", put: "!== 'lost') return;" }],
  },
  {
    name: 'no watchdog',
    rule: '4 watchdog',
    voters: 3,
    quickly: 1500,
    seed: 7,
    patches: [
      {
        file: 'src/core/lease.ts',
        find: 'if (this.#clock.now() < this.#untilMs) this.#beating = this.#beat();',
        put: '',
      },
    ],
  },
  {
    name: 'completing without end',
    rule: '4 maxHold',
    voters: 3,
    profile: 'amnesia',
    quickly: 1500,
    seed: 6,
    patches: [
      {
        file: 'src/redis/settling.ts',
        find: 'this.#clock.now() - lease.startedMs > this.#maxHoldMs',
        put: 'this.#maxHoldMs === 0',
      },
    ],
  },
  {
    name: 'validity not checked at the first byte',
    rule: '3 validity on the very turn of the first byte',
    voters: 3,
    profile: 'asleep',
    quickly: 1500,
    seed: 63,
    patches: [{ file: 'src/core/handle.ts', find: '() => lease.mayStart());', put: '() => true);' }],
  },
  {
    name: 'validity not checked when won',
    rule: '3.2 elapsed + drift < lockTtl − minWork',
    voters: 3,
    profile: 'asleep',
    quickly: 1500,
    seed: 7,
    patches: [{ file: claims, find: 'if (lease.mayStart()) {', put: 'if (lease.attempt > 0) {' }],
  },
  {
    name: 'completed once only',
    rule: '4 settle: until a quorum has acknowledged',
    voters: 3,
    profile: 'lossy',
    quickly: 1500,
    seed: 53,
    patches: [
      {
        file: 'src/redis/settling.ts',
        find: "if ((await this.#completeOnce(lease, content, acks)) === 'short') this.#track(this.#completeOn(lease, content, acks));",
        put: 'await this.#completeOnce(lease, content, acks);',
      },
    ],
  },
  {
    name: 'lock not kept while completing',
    rule: '4 settle: goes on extending',
    voters: 3,
    profile: 'amnesia',
    quickly: 1500,
    seed: 4,
    patches: [{ file: 'src/redis/settling.ts', find: 'await this.#extend(lease);', put: '' }],
  },
  {
    name: 'one done is not enough',
    rule: '3.1 one done is a duplicate',
    voters: 3,
    profile: 'long ago',
    quickly: 1500,
    seed: 23,
    patches: [
      {
        file: 'src/redis/decide.ts',
        find: 'if (done) { const heard',
        put: 'if (done && lists.some(({ oks, quorum }) => oks < quorum)) { const heard',
      },
      { file: claims, find: 'if (late) return', put: 'if (late && late.attempt < 0) return' },
    ],
  },
  {
    name: 'a done that comes while the attempt is confirmed is not looked at',
    rule: '3 votes that come late',
    voters: 3,
    profile: 'long ago',
    quickly: 1500,
    seed: 23,
    patches: [{ file: claims, find: 'if (late) return', put: 'if (late && late.attempt < 0) return' }],
  },
  {
    name: 'holders not told apart',
    rule: '3.3 one foreign token',
    voters: 3,
    profile: 'storm',
    quickly: 1500,
    seed: 14,
    patches: [
      {
        file: 'src/redis/decide.ts',
        find: 'holders.get(vote.token) ?? { token: vote.token,',
        put: "holders.get('') ?? { token: '',",
      },
      { file: 'src/redis/decide.ts', find: 'holders.set(vote.token, holder)', put: "holders.set('', holder)" },
    ],
  },
  {
    name: 'released on an unknown outcome',
    rule: '4 uncertain: the lock is left',
    voters: 3,
    quickly: 1500,
    seed: 2,
    patches: [
      {
        file: 'src/core/settle.ts',
        find: "return { claim: 'leave' };",
        put: "return { claim: 'release', sent: true };",
      },
    ],
  },
  {
    name: 'completed on a failure',
    rule: '4 settle: the table',
    voters: 3,
    quickly: 1500,
    seed: 1,
    patches: [
      { file: 'src/core/settle.ts', find: 'completes(route, result.reply.status) ?', put: 'result.reply.status > 0 ?' },
    ],
  },
  {
    name: 'late success not completed',
    rule: '4 uncertain: a late success completes',
    voters: 3,
    quickly: 1500,
    seed: 57,
    patches: [
      {
        file: 'src/core/handle.ts',
        find: 'if (completes(route, reply.status)) await gate.claims.complete',
        put: 'if (reply.status === 0) await gate.claims.complete',
      },
    ],
  },
  {
    name: 'unknown hold not set',
    rule: '4 uncertain: unknownHold',
    voters: 3,
    quickly: 1500,
    seed: 2,
    patches: [
      {
        file: claims,
        find: 'await this.#ballots.extend(ballot, this.#options.unknownHoldMs);',
        put: 'await Promise.resolve();',
      },
    ],
  },
  {
    name: 'no lock hold after a restart',
    rule: '6 hold=locks',
    voters: 3,
    profile: 'bare quorum',
    quickly: 1500,
    seed: 3,
    patches: [
      {
        file: model,
        find: "else if ((before === '' && !known!.always) || before === 'locks') this.#holdForLocks(longest);",
        put: '',
      },
    ],
  },
  {
    name: 'no hold after memory loss',
    rule: '6 hold=records',
    voters: 3,
    profile: 'amnesia',
    quickly: 1500,
    seed: 19,
    patches: [
      {
        file: model,
        find: "if (why !== 'locks') this.#hold = { why, untilMs: Infinity };",
        put: "if (why !== 'locks') this.#hold = undefined;",
      },
    ],
  },
  {
    name: 'a learner counts after the lock hold',
    rule: '6 hold=records, without end',
    voters: 3,
    profile: 'late copies',
    quickly: 1500,
    seed: 7,
    patches: [
      {
        file: model,
        find: 'this.#hold = { why, untilMs: Infinity };',
        put: 'this.#hold = { why, untilMs: this.#now() + lockHoldMs(longest) };',
      },
    ],
  },
  {
    name: 'a restart replaces the hold of a learner',
    rule: '6 unless hold=records is set',
    voters: 3,
    profile: 'late copies',
    quickly: 1500,
    seed: 74,
    patches: [
      { file: model, find: "else if ((before === '' && !known!.always) || before === 'locks') this", put: 'else this' },
    ],
  },
  {
    name: 'a hold is not begun again by a restart',
    rule: '6 hold=locks, while on hold',
    voters: 3,
    profile: 'on hold',
    quickly: 1500,
    seed: 291,
    patches: [{ file: model, find: "|| before === 'locks') this.#holdForLocks", put: ') this.#holdForLocks' }],
  },
  {
    name: 'taught before its locks have run out',
    rule: '6 re-sync: after the lock hold',
    voters: 3,
    profile: 'bare quorum',
    quickly: 1500,
    seed: 2,
    patches: [
      {
        file: 'src/redis/recovery.ts',
        find: 'this.#clock.now() - known.sinceMs < lockHoldMs(this.#options.lifeMs)',
        put: 'this.#clock.now() < 0',
      },
    ],
  },
  {
    name: 'taught by fewer than a quorum',
    rule: '6 re-sync: q voters whose records are whole',
    voters: 3,
    profile: 'late copies',
    quickly: 1500,
    seed: 7,
    patches: [{ file: 'src/redis/recovery.ts', find: 'whole.slice(0, quorum)', put: 'whole.slice(0, quorum - 1)' }],
  },
  {
    name: 'taught without looking at boots',
    rule: '6 re-sync: clears the hold if all boots are unchanged',
    voters: 3,
    profile: 'late copies',
    patches: [
      {
        file: 'src/redis/resync.ts',
        find: 'voters.every((voter, index) => voter.boot === boots[index])',
        put: 'voters.length === boots.length',
      },
      {
        file: 'src/redis/voter.ts',
        find: 'lostWallMs: number): Promise<void> { if (boot !== this.boot) return;',
        put: 'lostWallMs: number): Promise<void> {',
      },
      {
        file: model,
        find: 'if (boot !== this.#boot() || !this.#held() ||',
        put: "if (boot === '' || !this.#held() ||",
      },
    ],
  },
  {
    name: 'a majority that forgot is never let count',
    rule: '6 majority forgotten',
    voters: 3,
    profile: 'amnesia',
    quickly: 1500,
    seed: 8,
    patches: [
      {
        file: 'src/redis/recovery.ts',
        find: 'return nothingToWaitFor ||',
        put: 'return nothingToWaitFor &&',
      },
    ],
  },
  {
    name: 'not told again after a power cut',
    rule: '6 gateways send again what they touched',
    voters: 3,
    profile: 'late copies',
    quickly: 1500,
    seed: 70,
    patches: [
      {
        file: claims,
        find: 'this.#settling.tellUntilAnswered(voter, written);',
        put: '',
      },
    ],
  },
  {
    name: 'trust without a boot',
    rule: '6 boots checked before a hold is cleared',
    voters: 3,
    profile: 'first start',
    patches: [
      {
        file: model,
        find: 'if (boot !== this.#boot() || !this.#held() ||',
        put: "if (boot === '' || !this.#held() ||",
      },
    ],
  },
  {
    name: 'trust from memory',
    rule: '6 firstStart: trust only if no voter has any key',
    voters: 3,
    profile: 'first start',
    quickly: 1500,
    seed: 237,
    patches: [
      {
        file: 'src/redis/voters.ts',
        find: "answered[index] && voter.hold === 'empty' && voter.boot === boots[index]",
        put: 'voter && index < boots.length',
      },
    ],
  },
  {
    name: 'claim sent again after its release',
    rule: '2 NOSCRIPT: without items whose caller gave up',
    voters: 3,
    profile: 'network',
    quickly: 1500,
    seed: 1,
    patches: [
      {
        file: 'src/redis/voter.ts',
        find: 'if (claim) claim.withdrawn = true;',
        put: 'if (claim) claim.withdrawn = false;',
      },
    ],
  },
  {
    name: 'minority oks not released',
    rule: '3 released likewise',
    voters: 3,
    profile: 'storm',
    quickly: 1500,
    seed: 1,
    patches: [
      {
        file: claims,
        find: "replies[index] = this.#voters[index]!.ask({ op: 'release', id, token, takeBack });",
        put: '',
      },
    ],
  },
  {
    name: 'voters on hold do not write completions',
    rule: '6 all writes go to held voters too',
    voters: 3,
    profile: 'late copies',
    belt: 'a completion is done only when a quorum that counts has it, and every quorum that teaches meets that one',
    patches: [
      {
        file: model,
        find: 'if (ours) this.#put(item.id, { lock: undefined }); if (item.attempt <= rec.floor)',
        put: 'if (ours) this.#put(item.id, { lock: undefined }); if (!counted) return ok(false); if (item.attempt <= rec.floor)',
      },
    ],
  },
  {
    name: 'done of voters on hold not believed',
    rule: "6 held voters' done answers count",
    voters: 3,
    profile: 'late copies',
    belt: 'who wins has a quorum of counted oks, which meets every quorum that counts a completion',
    patches: [
      {
        file: model,
        find: "if (this.#marker === undefined) return { status: 'no-marker' }; if (record?.done) return done();",
        put: "if (this.#marker === undefined) return { status: 'no-marker' }; if (record?.done) return counted ? done() : { status: 'error', message: 'on hold' };",
      },
    ],
  },
  {
    name: 'a completion that was forgotten is written',
    rule: '8 complete at or below the floor is refused',
    voters: 3,
    profile: 'forgotten',
    quickly: 1500,
    seed: 1,
    patches: [
      {
        file: model,
        find: "if (item.attempt <= rec.floor) return { status: 'forgotten', floor: rec.floor };",
        put: '',
      },
    ],
  },
  {
    name: 'a completion that was forgotten counts',
    rule: '8 a done at or below a floor is void',
    voters: 3,
    profile: 'forgotten',
    quickly: 1500,
    seed: 1,
    patches: [{ file: 'src/redis/decide.ts', find: 'newest.attempt > floor ? newest', put: 'newest ? newest' }],
  },
  {
    name: 'forgotten while an attempt holds the event',
    rule: '8 refused while in progress',
    voters: 3,
    profile: 'forgotten',
    quickly: 1500,
    seed: 1,
    patches: [
      {
        file: 'src/redis/operator.ts',
        find: 'if (locks.length > 0 && !force)',
        put: 'if (locks.length > 99 && !force)',
      },
    ],
  },
  {
    name: 'connections do not keep order',
    rule: '2 order per connection',
    voters: 3,
    unordered: true,
    quickly: 1500,
    seed: 1,
    patches: [],
  },
];
