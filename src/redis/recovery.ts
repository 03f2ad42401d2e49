/**
 * Brings voters back that may have forgotten (protocol section 6). `hello` put them on hold; here is when
 * the hold of one that lost its records ends. One that lost only its locks ends by itself.
 *
 *     learning ──its locks have run out, a quorum is whole──▶ copied from that quorum ──▶ counts
 *        └──no quorum is whole, for `recoverAfter`──▶ copied from all that can be reached ──▶ counts, memory lost
 *
 * Whole: a voter that has its records, on hold for its locks or not. When all voters are empty (first
 * installation), or there is only one, nothing is gained by waiting longer than the locks need.
 *
 * While the set of voters changes (section 7) the old list is brought back as always, and the new one learns from it,
 * all its voters together:
 *
 *     new, learning ──nobody writes to the old list alone any more──▶ copied from a quorum of the old ──▶ count
 *        ▲                                                                                                │
 *        └──────────── a gateway is back that writes to the old list alone: they miss what it does ───────┘
 */
import type { Clock, Events } from '../core/ports.ts';
import { quorumOf } from './decide.ts';
import { lockHoldMs } from './items.ts';
import type { Membership } from './membership.ts';
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
  readonly #nodes: readonly Voter[];
  /** The old list, while the set of voters changes. */
  readonly #previous: readonly Voter[] | undefined;
  readonly #membership: Membership | undefined;
  readonly #options: RecoveryOptions;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #stop = new AbortController();
  /** When each learner was first seen to learn, under its boot. */
  readonly #learning = new Map<Voter, { boot: string; sinceMs: number }>();
  /** By list, since when fewer than a quorum are whole although a quorum can be reached. */
  readonly #forgottenSinceMs = new Map<readonly Voter[], number>();
  readonly #running: Promise<void>;

  constructor(
    voters: readonly Voter[],
    options: RecoveryOptions,
    clock: Clock,
    events: Events,
    membership?: Membership,
  ) {
    this.#voters = voters;
    const [nodes, previous] = membership?.lists?.map(({ places }) => places.map((place) => voters[place]!)) ?? [];
    this.#nodes = nodes ?? voters;
    this.#previous = previous;
    this.#membership = membership;
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
    this.#note(this.#voters.filter((voter) => voter.eligible && voter.unfit === undefined && voter.learns));
    if (this.#previous) await this.#bringBack(this.#previous);
    if (!this.#previous || !(await this.#change(this.#previous))) await this.#bringBack(this.#nodes);
  }

  async #bringBack(list: readonly Voter[]): Promise<void> {
    const { reached, learners, whole } = standing(list);
    const quorum = quorumOf(list.length);
    if (learners.length === 0 || reached.length < quorum) {
      this.#forgottenSinceMs.delete(list);
    } else if (whole.length >= quorum) {
      this.#forgottenSinceMs.delete(list);
      for (const learner of learners) {
        if (await this.#taught(learner, whole.slice(0, quorum))) await this.#admit(learner, 0);
      }
    } else if (this.#mayGoOn(list)) {
      const lostWallMs = isFirst(list) ? 0 : this.#clock.wall();
      for (const learner of learners) {
        if (await this.#taught(learner, reached)) await this.#admit(learner, lostWallMs);
      }
    }
  }

  /**
   * True while the new list is not to be brought back by itself: a voter that is new would miss what is still written
   * to the old one alone; and as long as those that have their records, with those that cannot be asked, are no quorum
   * of it, it has decided nothing that the old list does not know.
   */
  async #change(previous: readonly Voter[]): Promise<boolean> {
    const nodes = this.#nodes;
    const old = this.#oldAlone(previous);
    if (old === 'there') {
      for (const voter of nodes)
        if (!previous.includes(voter) && voter.eligible && !voter.learns) await this.#relearn(voter);
    }
    if (old !== 'gone') return true;
    const { reached, learners, whole } = standing(nodes);
    if (whole.length + (nodes.length - reached.length) >= quorumOf(nodes.length)) return false;
    const teachers = standing(previous).whole;
    const quorum = quorumOf(previous.length);
    if (teachers.length < quorum) return true;
    const sources = [...new Set([...teachers.slice(0, quorum), ...whole])];
    const taught: Voter[] = [];
    for (const learner of learners) if (await this.#taught(learner, sources)) taught.push(learner);
    // One by one they would be no majority for a while, neither of those that learn nor of those that count.
    if (taught.length + whole.length >= quorumOf(nodes.length))
      await Promise.all(taught.map(async (learner) => await this.#admit(learner, 0)));
    return true;
  }

  /** Whether a gateway writes to the old list alone; not known while no majority of it has said so. */
  #oldAlone(previous: readonly Voter[]): 'there' | 'gone' | 'unknown' {
    const others = previous.map((voter) => voter.others);
    if (others.some((digest) => digest !== undefined && digest !== '' && digest !== this.#membership?.nodes))
      return 'there';
    return others.filter((digest) => digest !== undefined).length >= quorumOf(previous.length) ? 'gone' : 'unknown';
  }

  async #relearn(voter: Voter): Promise<void> {
    this.#events.warn('a gateway without redis.previous is back: the new voters learn again what it does', {
      node: voter.name,
    });
    await voter.relearn(voter.boot);
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
  #mayGoOn(list: readonly Voter[]): boolean {
    const sinceMs = this.#forgottenSinceMs.get(list) ?? this.#clock.now();
    this.#forgottenSinceMs.set(list, sinceMs);
    if (isFirst(list)) return true;
    if (this.#options.onMemoryLoss === 'refuse') return false;
    const nothingToWaitFor = allEmpty(list) || list.length === 1;
    return nothingToWaitFor || this.#clock.now() - sinceMs >= this.#options.recoverAfterMs;
  }

  /** Copies what `teachers` know, once every lock that the learner may have forgotten has run out. */
  async #taught(learner: Voter, teachers: readonly Voter[]): Promise<boolean> {
    const known = this.#learning.get(learner);
    if (known?.boot !== learner.boot) return false;
    if (this.#clock.now() - known.sinceMs < lockHoldMs(this.#options.lifeMs)) return false;
    const { token, resyncRate: rate } = this.#options;
    if (!(await learner.startSync(token, 1000))) return false;
    const sources = teachers.filter((voter) => voter !== learner);
    return await resync(learner, sources, { rate, token }, this.#clock, this.#stop.signal);
  }

  /** Lets it count, under the boot with which it began to learn. */
  async #admit(learner: Voter, lostWallMs: number): Promise<void> {
    await learner.admit(this.#learning.get(learner)?.boot ?? '', lostWallMs);
    if (lostWallMs > 0) this.#events.memoryLost(learner.name, lostWallMs);
  }
}

interface Standing {
  /** Those that can be asked, and are what they are taken for. */
  readonly reached: readonly Voter[];
  /** Of these: it lost its records, or may have. */
  readonly learners: readonly Voter[];
  /** Of these: it has them. */
  readonly whole: readonly Voter[];
}

function standing(list: readonly Voter[]): Standing {
  const reached = list.filter((voter) => voter.eligible && voter.unfit === undefined);
  return {
    reached,
    learners: reached.filter((voter) => voter.learns),
    whole: reached.filter((voter) => !voter.learns),
  };
}

const allEmpty = (list: readonly Voter[]): boolean => list.every((voter) => voter.eligible && voter.hold === 'empty');

/** First installation, as far as this gateway can know. */
const isFirst = (list: readonly Voter[]): boolean => allEmpty(list) && !list.some((voter) => voter.wasWhole);
