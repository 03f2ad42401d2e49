/**
 * Claims on a quorum of voters: one event gets at most one owner at a time (protocol sections 2 to 4).
 *
 *              ┌──────────────── undecided: release, fresh token, again within the budget
 *              ▼                        │
 *     round: claim on all ──▶ decide ───┼─▶ done        repair the voters that said ok
 *                                       ├─▶ held        release our minority
 *                                       ├─▶ unavailable release
 *                                       └─▶ won ──attempt > 1──▶ confirm ──▶ done · undecided · won
 *
 *     won: valid until (start of the round + lockTtl − drift); extend moves it on
 *          ├─ complete   until a quorum of counted voters has the done record, the lock kept meanwhile
 *          ├─ release    while ours; the attempt is taken back where no byte was sent
 *          └─ leave      one last extension to `unknownHold`, flagged unknown; may still be completed or released
 *
 * Without a quorum a claim may be asked to keep what the voters that answer have granted (`partial`): another store
 * decides then, and nobody else gets a quorum of these voters meanwhile.
 */
import type { DeliveryKey, Done } from '../core/delivery.ts';
import type {
  ClaimResult,
  Clock,
  Completion,
  Events,
  Lease,
  Standing,
  VersionChange,
  Versions,
  VoterStatus,
  Votes,
} from '../core/ports.ts';
import { Ballots, gather, type Ballot } from './ballots.ts';
import { liveDone, type Decision, type DoneAnswer, type Vote, type VoterList } from './decide.ts';
import { decodeDone, encodeDone } from './done.ts';
import { drift } from './items.ts';
import { QuorumLease } from './quorum-lease.ts';
import { Recent, type Learn } from './recent.ts';
import { Settling } from './settling.ts';
import { orderOnQuorum } from './versions.ts';
import type { Reply } from './batch.ts';
import type { Voter } from './voter.ts';

/** All in milliseconds; their relations are checked with the configuration. */
export interface ClaimOptions {
  readonly lockTtlMs: number;
  /** One deadline for all rounds and confirmations of a claim. */
  readonly budgetMs: number;
  readonly unknownHoldMs: number;
  readonly maxHoldMs: number;
  /** Deadline of one command on one voter. */
  readonly voterTimeoutMs: number;
  /** How long a handled event is remembered, unless its route has a time of its own. */
  readonly retentionMs: number;
}

export class QuorumClaims implements Votes, AsyncDisposable {
  readonly #voters: readonly Voter[];
  readonly #ballots: Ballots;
  readonly #settling: Settling;
  readonly #recent: Recent;
  readonly #options: ClaimOptions;
  readonly #clock: Clock;
  readonly #events: Events;

  /** `lists`: while the set of voters changes; a claim then needs a majority of each. */
  constructor(
    voters: readonly Voter[],
    options: ClaimOptions,
    clock: Clock,
    events: Events,
    lists?: readonly VoterList[],
  ) {
    this.#voters = voters;
    this.#ballots = new Ballots(voters, lists);
    this.#options = options;
    this.#clock = clock;
    this.#events = events;
    this.#recent = new Recent(clock);
    for (const voter of voters) {
      // What it may not have kept is what was written before it fell silent, however long ago that is.
      let before: Learn[] = [];
      voter.onQuiet((quiet) => (before = quiet ? this.#recent.all() : []));
      voter.onReboot((concerns) => {
        const written = [...before, ...this.#recent.all()].filter(({ id }) => concerns(id));
        this.#settling.tellUntilAnswered(voter, written);
      });
    }
    this.#settling = new Settling(
      voters,
      this.#ballots,
      (lease) => this.extend(lease),
      options.maxHoldMs,
      clock,
      events,
    );
  }

  async claim(key: DeliveryKey, retentionMs: number, alone = false): Promise<ClaimResult> {
    const startedMs = this.#clock.now();
    const result = await this.#rounds(key, retentionMs, startedMs + this.#options.budgetMs, alone);
    this.#events.claimEnded(result.kind, this.#clock.now() - startedMs);
    if (result.kind === 'held') this.#events.lockFailed(result.split ? 'split' : 'held');
    if (result.kind === 'unavailable') this.#events.lockFailed('no_quorum');
    return result;
  }

  /** Moves validity on when a quorum still holds; then puts the lock back on voters that lost it. */
  async extend(lease: Lease): Promise<boolean> {
    const own = lease as QuorumLease;
    const { ballot } = own;
    if (own.partial) {
      await this.#extendEach(own, ballot.lockMs);
      return false;
    }
    const sentMs = this.#clock.now();
    const held = await this.#ballots.extend(ballot, ballot.lockMs);
    if (!held) return false;
    own.validUntilMs = Math.max(own.validUntilMs, sentMs + ballot.lockMs - drift(ballot.lockMs));
    ballot.replies.forEach((reply, index) => void this.#heal(own, index, reply));
    return true;
  }

  async complete(lease: Lease, completion: Completion): Promise<void> {
    const own = lease as QuorumLease;
    const content = encodeDone({ ...completion, wallMs: this.#clock.wall() });
    const { attempt, retentionMs: recordMs } = own;
    this.#recent.wrote({ op: 'learn', id: own.key.id, done: true, attempt, floor: 0, content, recordMs });
    await this.#settling.complete(own, content);
  }

  async release(lease: Lease, sent: boolean): Promise<void> {
    const { ballot, partial } = lease as QuorumLease;
    ballot.takeBack = !sent;
    if (!sent && !partial) this.#recent.takenBack(ballot.id);
    ballot.over = true;
    if (partial) {
      await this.#drop(ballot, { takeBack: !sent, everywhere: true });
      return;
    }
    await this.#ballots.release(ballot);
    this.#settling.releaseUntilAnswered(ballot, ballot.replies);
  }

  async leave(lease: Lease): Promise<void> {
    const own = lease as QuorumLease;
    const { ballot } = own;
    ballot.unknown = true;
    if (own.partial) await this.#extendEach(own, this.#options.unknownHoldMs);
    else await this.#ballots.extend(ballot, this.#options.unknownHoldMs);
  }

  async raise(lease: Lease, attempt: number): Promise<Extract<ClaimResult, { kind: 'done' }> | 'raised' | 'lost'> {
    const own = lease as QuorumLease;
    const { ballot } = own;
    if (!own.partial) {
      const confirmed = await this.#confirm(ballot, attempt);
      if (confirmed === 'failed') return 'lost';
      if (confirmed !== 'confirmed')
        return this.#duplicate(ballot, [...ballot.claims, ...confirmed.replies], confirmed.done);
    }
    own.attempt = attempt;
    this.#wroteOpen(own);
    return 'raised';
  }

  teach(lease: Lease, done: Done, attempt: number, leftMs: number): void {
    const { ballot } = lease as QuorumLease;
    const { id, token } = ballot;
    const content = encodeDone(done);
    const recordMs = Math.max(1, Math.ceil(leftMs));
    ballot.over = true;
    ballot.takeBack = true;
    this.#recent.wrote({ op: 'learn', id, done: true, attempt, floor: 0, content, recordMs });
    const told = this.#voters.map((voter) => voter.ask({ op: 'repair', id, token, attempt, content, recordMs }));
    this.#settling.releaseUntilAnswered(ballot, told);
  }

  async forgotten({ id }: DeliveryKey, floor: number, leftMs: number): Promise<void> {
    const recordMs = Math.max(1, Math.ceil(leftMs));
    const learnt = { op: 'learn', id, done: false, attempt: floor, floor, content: '', recordMs } as const;
    await Promise.all(this.#voters.map(async (voter) => await voter.ask(learnt)));
  }

  async peek(key: DeliveryKey): Promise<Standing> {
    const replies = await Promise.all(this.#voters.map((voter) => voter.ask({ op: 'peek', id: key.id })));
    if (!this.#ballots.byMajorities((place) => replies[place]!.status !== 'error')) return { kind: 'unavailable' };
    const done = liveDone(replies);
    if (done) return { kind: 'done', done: decodeDone(done.content) };
    const isFree = (learning: boolean) => (place: number, young: boolean) => {
      const [reply, voter] = [replies[place]!, this.#voters[place]!];
      if (reply.status !== 'free') return false;
      return learning && young ? voter.isLearning(reply, key.id) : reply.counted && voter.counts(reply, key.id);
    };
    if (this.#ballots.byMajorities(isFree(false)) || this.#ballots.byMajorities(isFree(true))) return { kind: 'free' };
    const holds = replies.filter((reply) => reply.status === 'held');
    if (holds.length === 0) return { kind: 'unavailable' };
    return {
      kind: 'held',
      leftMs: Math.max(...holds.map((hold) => hold.leftMs)),
      unknown: holds.some((hold) => hold.unknown),
    };
  }

  async order(change: VersionChange): Promise<Versions | 'unavailable'> {
    return await orderOnQuorum(this.#voters, this.#ballots, this.#recent, change);
  }

  /** Whether a majority of the voters counts now. */
  available(): boolean {
    const counts = (learning: boolean) => (place: number, young: boolean) => {
      const voter = this.#voters[place]!;
      return learning && young ? voter.eligible && voter.learns : voter.counted;
    };
    return this.#ballots.byMajorities(counts(false)) || this.#ballots.byMajorities(counts(true));
  }

  /** How each voter stands. */
  get voters(): readonly VoterStatus[] {
    return this.#voters.map((voter) => voter.status);
  }

  /** Waits for what goes on in the background: completions until a quorum has them, releases. */
  async settled(): Promise<void> {
    await this.#settling.idle();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#settling[Symbol.asyncDispose]();
    await Promise.all(this.#voters.map((voter) => voter[Symbol.asyncDispose]()));
  }

  async #rounds(key: DeliveryKey, retentionMs: number, deadlineMs: number, alone: boolean): Promise<ClaimResult> {
    const { lockTtlMs, maxHoldMs, voterTimeoutMs } = this.#options;
    const recordMs = Math.max(retentionMs, maxHoldMs + lockTtlMs);
    let seen: string | undefined;
    for (;;) {
      const startedMs = this.#clock.now();
      const { ballot, verdict } = this.#ballots.acquire(key.id, lockTtlMs, recordMs);
      const decision = await this.#decided(ballot);
      switch (decision.kind) {
        case 'done':
          return this.#duplicate(ballot, ballot.claims, decision.done);
        case 'held':
          void this.#drop(ballot);
          return { kind: 'held', leftMs: decision.leftMs, unknown: decision.unknown, split: false };
        case 'unavailable':
          if (alone) return this.#partial(key, retentionMs, startedMs, ballot);
          void this.#drop(ballot);
          return { kind: 'unavailable' };
        case 'won': {
          if (!(await verdict)) break; // a voter has started anew since it voted
          const confirmed =
            decision.attempt > 1 ? await this.#confirm(ballot, decision.attempt) : ('confirmed' as const);
          if (typeof confirmed === 'object')
            return this.#duplicate(ballot, [...ballot.claims, ...confirmed.replies], confirmed.done);
          if (confirmed === 'failed') break;
          const late = liveDone(ballot.claims); // a vote that came while the others were confirmed
          if (late) return this.#duplicate(ballot, ballot.claims, late);
          const lease = new QuorumLease(
            key,
            decision.attempt,
            retentionMs,
            startedMs,
            ballot,
            this.#memorySinceMs(),
            this.#clock,
          );
          if (lease.mayStart()) {
            this.#wroteOpen(lease);
            return { kind: 'won', lease };
          }
          this.#events.lockFailed('expired');
          break;
        }
        case 'undecided':
          break;
      }
      const released = this.#drop(ballot);
      const { leftMs, holder } = decision.kind === 'undecided' ? decision : { leftMs: 0, holder: undefined };
      if (holder !== undefined && holder === seen) return { kind: 'held', leftMs, unknown: false, split: false };
      seen = holder;
      // The lowest token seen goes again after one round trip, the others a little later: somebody wins.
      if (isLowest(ballot)) await released;
      else await this.#clock.sleep(10 + this.#clock.random() * 40);
      // A round takes up to two deadlines, claim and confirmation: one that cannot end in time is not begun.
      if (this.#clock.now() + 2 * voterTimeoutMs > deadlineMs)
        return { kind: 'held', leftMs, unknown: false, split: true };
    }
  }

  /** A voter that shows another's lock may be the last one of a quorum that is at work: that comes first. */
  #partial(key: DeliveryKey, retentionMs: number, startedMs: number, ballot: Ballot): ClaimResult {
    const holds = ballot.claims.filter((claim) => claim?.status === 'held');
    if (holds.length > 0) {
      void this.#drop(ballot);
      const leftMs = Math.max(...holds.map((hold) => hold.leftMs));
      return { kind: 'held', leftMs, unknown: holds.some((hold) => hold.unknown), split: false };
    }
    const attempt = Math.max(1, ...ballot.claims.map((claim) => (claim?.status === 'ok' ? claim.attempt : 1)));
    const since = this.#memorySinceMs();
    const lease = new QuorumLease(key, attempt, retentionMs, startedMs, ballot, since, this.#clock, true);
    return { kind: 'unavailable', partial: lease };
  }

  /** Of a lease without a quorum: on every voter that answers, and where the lock is free. */
  async #extendEach(lease: QuorumLease, lockMs: number): Promise<void> {
    const { id, token, unknown } = lease.ballot;
    await Promise.all(
      this.#voters.map(async (voter, index) => {
        const reply = voter.ask({ op: 'extend', id, token, lockMs, unknown });
        await this.#heal(lease, index, reply);
      }),
    );
  }

  #wroteOpen({ key, attempt, ballot: { recordMs } }: QuorumLease): void {
    this.#recent.wrote({ op: 'learn', id: key.id, done: false, attempt, floor: 0, content: '', recordMs });
  }

  /** The instant before which a majority has forgotten events, for one retention of it (`Lease.memorySinceMs`). */
  #memorySinceMs(): number | undefined {
    const lostMs = Math.max(...this.#voters.map((voter) => voter.lostWallMs));
    return lostMs > 0 && this.#clock.wall() - lostMs < this.#options.retentionMs ? lostMs : undefined;
  }

  async #decided(ballot: Ballot): Promise<Exclude<Decision, { kind: 'pending' }>> {
    for (;;) {
      const decision = this.#ballots.decide(ballot.claims, ballot.id);
      if (decision.kind !== 'pending') return decision;
      await ballot.next();
    }
  }

  /**
   * An attempt above 1 may follow one that was forwarded: raises the record to it wherever the lock is
   * still ours, and learns of a completion that the claim ran past.
   */
  async #confirm(
    ballot: Ballot,
    attempt: number,
  ): Promise<'confirmed' | 'failed' | { done: DoneAnswer; replies: Vote[] }> {
    const { id, token, recordMs } = ballot;
    const replies: (Reply | undefined)[] = this.#voters.map(() => undefined);
    const asked = this.#voters.map(async (voter, index) => {
      replies[index] = await voter.ask({ op: 'confirm', id, token, attempt, recordMs });
    });
    const verdict = await gather(asked, () => {
      const decision = this.#ballots.decide(replies, id);
      if (decision.kind === 'done') return { done: decision.done, replies };
      return decision.kind === 'won' ? ('confirmed' as const) : undefined;
    });
    return verdict ?? 'failed';
  }

  /** Copies the done record to voters that gave us the lock, or may still give it, and lets go of everything else. */
  #duplicate(ballot: Ballot, replies: readonly Vote[], done: DoneAnswer): Extract<ClaimResult, { kind: 'done' }> {
    const { id, token } = ballot;
    const { attempt, content } = done;
    const recordMs = Math.max(1, done.leftMs);
    const toRepair = new Set<number>();
    replies.forEach((reply, index) => {
      if (reply === undefined || reply.status === 'ok') toRepair.add(index % this.#voters.length);
    });
    for (const index of toRepair)
      void this.#voters[index]!.ask({ op: 'repair', id, token, attempt, content, recordMs });
    void this.#drop(ballot, { except: toRepair });
    return { kind: 'done', done: decodeDone(content) };
  }

  /** Releases a round that was not won wherever something may have been granted, even after the decision. */
  #drop(ballot: Ballot, { except, takeBack = true, everywhere = false }: DropOptions = {}): Promise<unknown> {
    const { id, token } = ballot;
    const replies: Promise<Reply>[] = [];
    ballot.claims.forEach((claim, index) => {
      if (except?.has(index) === true || (!everywhere && claim && provesNothingGranted(claim))) return;
      replies[index] = this.#voters[index]!.ask({ op: 'release', id, token, takeBack });
    });
    ballot.takeBack = takeBack;
    this.#settling.releaseUntilAnswered(ballot, replies);
    return Promise.all(replies);
  }

  async #heal(lease: QuorumLease, index: number, reply: Promise<Reply>): Promise<void> {
    if ((await reply).status !== 'lost' || lease.ballot.over) return;
    const { id, token, lockMs, recordMs } = lease.ballot;
    await this.#voters[index]!.ask({ op: 'heal', id, token, lockMs, attempt: lease.attempt, recordMs });
  }
}

interface DropOptions {
  readonly except?: ReadonlySet<number>;
  readonly takeBack?: boolean;
  /** Also where the claim was not granted: the lock may have been put there since. */
  readonly everywhere?: boolean;
}

/** Only an answer proves that nothing was granted; silence and errors do not, unless nothing was sent. */
function provesNothingGranted(reply: Reply): boolean {
  if (reply.status === 'error') return reply.message === 'down' || reply.message === 'skipped';
  return reply.status === 'held' || reply.status === 'done' || reply.status === 'no-marker';
}

function isLowest(ballot: Ballot): boolean {
  return ballot.claims.every((claim) => claim?.status !== 'held' || ballot.token < claim.token);
}
