/**
 * Brings voters back that may have forgotten (protocol section 6). `hello` put them on hold; here is when
 * the hold of one that lost its records ends. One that lost only its locks ends by itself.
 *
 *     learning ──its locks have run out, a quorum is whole──▶ copied from that quorum ──▶ counts
 *        └──no quorum is whole, for `recoverAfter`──▶ copied from all that can be reached ──▶ counts, memory lost
 *
 * Whole: a voter that has its records, on hold for its locks or not. When all voters are empty (first
 * installation), or there is only one, nothing is gained by waiting longer than the locks need.
 */
import type { Clock, Events } from '../core/ports.ts';
import { quorumOf } from './decide.ts';
import { lockHoldMs } from './items.ts';
import { resync } from './resync.ts';
import type { Voter } from './voter.ts';

export interface RecoveryOptions {
  /** The longest life a lock can be given. */
  readonly lifeMs: number;
  /** How long a quorum must have been without its records before the service goes on without them. */
  readonly recoverAfterMs: number;
  /** `refuse`: it never does, by itself. */
  readonly onMemoryLoss: 'recover' | 'refuse';
  /** Records copied per second, at most. */
  readonly resyncRate: number;
  readonly token: string;
}

const TICK_MS = 500;

export class Recovery implements AsyncDisposable {
  readonly #voters: readonly Voter[];
  readonly #options: RecoveryOptions;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #stop = new AbortController();
  /** When each learner was first seen to learn, under its boot. */
  readonly #learning = new Map<Voter, { boot: string; sinceMs: number }>();
  /** Since when fewer than a quorum are whole although a quorum can be reached. */
  #forgottenSinceMs: number | undefined;
  readonly #running: Promise<void>;

  constructor(voters: readonly Voter[], options: RecoveryOptions, clock: Clock, events: Events) {
    this.#voters = voters;
    this.#options = options;
    this.#clock = clock;
    this.#events = events;
    this.#running = this.#run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#clock.sleep(TICK_MS, signal);
      if (!signal.aborted) await this.#tick();
    }
  }

  async #tick(): Promise<void> {
    const reached = this.#voters.filter((voter) => voter.eligible && voter.unfit === undefined);
    const learners = reached.filter(learns);
    const whole = reached.filter((voter) => !learns(voter));
    this.#note(learners);
    const quorum = quorumOf(this.#voters.length);
    if (learners.length === 0 || reached.length < quorum) {
      this.#forgottenSinceMs = undefined;
    } else if (whole.length >= quorum) {
      this.#forgottenSinceMs = undefined;
      for (const learner of learners) await this.#teach(learner, whole.slice(0, quorum), 0);
    } else if (this.#mayGoOn()) {
      const lostWallMs = this.#first() ? 0 : this.#clock.wall();
      for (const learner of learners) await this.#teach(learner, reached, lostWallMs);
    }
  }

  #note(learners: readonly Voter[]): void {
    for (const voter of this.#voters) {
      const known = this.#learning.get(voter);
      if (!learners.includes(voter)) {
        if (voter.eligible) this.#learning.delete(voter);
      } else if (known?.boot !== voter.boot) {
        this.#learning.set(voter, { boot: voter.boot, sinceMs: this.#clock.now() });
        const { name: node, hold: why } = voter;
        this.#events.warn('a voter may have forgotten events and does not count until it has learnt them', {
          node,
          why,
        });
      }
    }
  }

  /** Whether the service is to go on without what a majority has forgotten. */
  #mayGoOn(): boolean {
    this.#forgottenSinceMs ??= this.#clock.now();
    if (this.#first()) return true;
    if (this.#options.onMemoryLoss === 'refuse') return false;
    const nothingToWaitFor = this.#allEmpty() || this.#voters.length === 1;
    return nothingToWaitFor || this.#clock.now() - this.#forgottenSinceMs >= this.#options.recoverAfterMs;
  }

  #allEmpty(): boolean {
    return this.#voters.every((voter) => voter.eligible && voter.hold === 'empty');
  }

  /** First installation, as far as this gateway can know. */
  #first(): boolean {
    return this.#allEmpty() && !this.#voters.some((voter) => voter.wasWhole);
  }

  /** Copies what `teachers` know, once every lock that the learner may have forgotten has run out, and lets it count. */
  async #teach(learner: Voter, teachers: readonly Voter[], lostWallMs: number): Promise<void> {
    const { boot, sinceMs } = this.#learning.get(learner)!;
    if (this.#clock.now() - sinceMs < lockHoldMs(this.#options.lifeMs)) return;
    const { token, resyncRate: rate } = this.#options;
    if (!(await learner.startSync(token, 1000))) return;
    const sources = teachers.filter((voter) => voter !== learner);
    if (!(await resync(learner, sources, { rate, token }, this.#clock, this.#stop.signal))) return;
    await learner.admit(boot, lostWallMs);
    if (lostWallMs > 0) this.#events.memoryLost(learner.name, lostWallMs);
  }
}

/** It lost its records, or may have. */
function learns(voter: Voter): boolean {
  return voter.hold === 'records' || voter.hold === 'empty';
}
