/**
 * What goes on after the sender was answered: completions until a quorum of counted voters has them, the
 * lock kept meanwhile, and releases until every voter has answered. Both go on through shutdown.
 */
import type { Clock, Events, Lease } from '../core/ports.ts';
import { gather, type Ballot, type Ballots } from './ballots.ts';
import type { QuorumLease } from './quorum-lease.ts';
import type { Learn } from './recent.ts';
import type { Reply } from './batch.ts';
import type { Voter } from './voter.ts';

/** A release is repeated for this long; then the lock runs out by itself. */
const RELEASE_MS = 5000;
/** Records are told again for this long; a few at a time, as claims go through the same connection. */
const TELL_MS = 60_000;
const TOLD_AT_ONCE = 100;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

export class Settling implements AsyncDisposable {
  readonly #voters: readonly Voter[];
  readonly #ballots: Ballots;
  readonly #extend: (lease: Lease) => Promise<boolean>;
  readonly #maxHoldMs: number;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();

  constructor(
    voters: readonly Voter[],
    ballots: Ballots,
    extend: (lease: Lease) => Promise<boolean>,
    maxHoldMs: number,
    clock: Clock,
    events: Events,
  ) {
    this.#voters = voters;
    this.#ballots = ballots;
    this.#extend = extend;
    this.#maxHoldMs = maxHoldMs;
    this.#clock = clock;
    this.#events = events;
  }

  /** Tries once, within one voter deadline; what is missing then is carried on with. */
  async complete(lease: QuorumLease, content: string): Promise<void> {
    const acks: (Reply | undefined)[] = this.#voters.map(() => undefined);
    if ((await this.#completeOnce(lease, content, acks)) === 'short')
      this.#track(this.#completeOn(lease, content, acks));
  }

  /** `replies` at the voters' places; a place without one needs no release. */
  releaseUntilAnswered(ballot: Ballot, replies: readonly Promise<Reply>[]): void {
    this.#track(this.#releaseOn(ballot, replies));
  }

  /** Tells a voter records again, in this order, until it has answered each of them. */
  tellUntilAnswered(voter: Voter, records: readonly Learn[]): void {
    this.#track(this.#tellOn(voter, records));
  }

  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Gives up what is still running. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.idle();
  }

  async #completeOn(lease: QuorumLease, content: string, acks: (Reply | undefined)[]): Promise<void> {
    this.#events.completionPending(1);
    try {
      // No longer than between two beats of the watchdog: the lock is kept all the while.
      const longestMs = Math.min(LONGEST_PAUSE_MS, lease.ballot.lockMs / 3);
      for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, longestMs)) {
        await this.#clock.sleep(pauseMs, this.#stop.signal);
        if (this.#stop.signal.aborted || this.#clock.now() - lease.startedMs > this.#maxHoldMs) {
          this.#events.completionGivenUp(lease.key.id, 'max_hold');
          return;
        }
        await this.#extend(lease);
        if ((await this.#completeOnce(lease, content, acks)) !== 'short') return;
      }
    } finally {
      this.#events.completionPending(-1);
    }
  }

  /** Asks the voters that have not acknowledged, or have started anew since; returns as soon as a quorum has. */
  async #completeOnce(
    lease: QuorumLease,
    content: string,
    acks: (Reply | undefined)[],
  ): Promise<'quorum' | 'forgotten' | 'short'> {
    const { id, token } = lease.ballot;
    const { attempt, retentionMs: recordMs } = lease;
    const asked = this.#ballots.votes(acks, id).map(async (ack, index) => {
      // An acknowledgement of a voter that cannot be asked may be void by now: it has to say so again.
      if (ack?.status === 'ok' && ack.counted && this.#voters[index]!.eligible) return;
      acks[index] = await this.#voters[index]!.ask({ op: 'complete', id, token, attempt, content, recordMs });
    });
    const verdict = await gather(asked, () => {
      if (acks.some((ack) => ack?.status === 'forgotten')) return 'forgotten' as const;
      return this.#ballots.decide(acks, id).kind === 'won' ? ('quorum' as const) : undefined;
    });
    if (verdict === 'forgotten') this.#events.completionGivenUp(lease.key.id, 'forgotten');
    return verdict ?? 'short';
  }

  async #releaseOn(ballot: Ballot, replies: readonly Promise<Reply>[]): Promise<void> {
    const { id, token, takeBack } = ballot;
    const untilMs = this.#clock.now() + RELEASE_MS;
    let open = [...replies];
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      const answers = await Promise.all(open);
      const unanswered = answers.flatMap((answer, index) => (answer?.status === 'error' ? [index] : []));
      if (unanswered.length === 0 || this.#stop.signal.aborted || this.#clock.now() + pauseMs > untilMs) return;
      await this.#clock.sleep(pauseMs, this.#stop.signal);
      open = [];
      for (const index of unanswered) open[index] = this.#voters[index]!.ask({ op: 'release', id, token, takeBack });
    }
  }

  async #tellOn(voter: Voter, records: readonly Learn[]): Promise<void> {
    const untilMs = this.#clock.now() + TELL_MS;
    let pauseMs = FIRST_PAUSE_MS;
    for (let told = 0; told < records.length && !this.#stop.signal.aborted;) {
      const some = records.slice(told, told + TOLD_AT_ONCE);
      const answers = await Promise.all(some.map(async (record) => await voter.ask(record)));
      if (answers.every((answer) => answer.status !== 'error')) {
        told += some.length;
        pauseMs = FIRST_PAUSE_MS;
        continue;
      }
      if (this.#clock.now() > untilMs) return;
      await this.#clock.sleep(pauseMs, this.#stop.signal);
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
  }

  #track(work: Promise<void>): void {
    const running = work.finally(() => this.#running.delete(running));
    this.#running.add(running);
  }
}
