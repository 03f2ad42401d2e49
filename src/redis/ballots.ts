/**
 * The package `redlock` counts our votes: acquire, extend and release run through it, with our voters as
 * its Redis clients. It knows neither attempts nor reasons, so each client keeps the voter's whole reply
 * in the round's ballot, where the claim reads it.
 *
 * Known faults of redlock 5.0.0-beta.2 and the guard for each: it retries against itself (`retryCount: 0`,
 * our own loop), hangs when voters never answer (every reply comes within the voter's deadline) or with an
 * even number of them (refused by the configuration), hands out locks that have expired and reads the wall
 * clock (validity is ours, on the monotonic clock; `expiration` is set aside before an extension), ignores
 * scripts that are strings (functions are passed), and releases everywhere by itself when an acquire fails
 * (answered here without asking anyone: the claim releases where something may have been granted).
 *
 * While the set of voters changes, each of the two lists has a redlock that counts it. They share the ballot: one token,
 * and a voter that is in both lists is asked once.
 */
import { createHash } from 'node:crypto';
import Redlock, { ExecutionError, type Lock } from 'redlock';
import type { Redis } from 'ioredis';
import { byMajorities, decide, type Decision, type Vote, type VoterList } from './decide.ts';
import type { Reply } from './batch.ts';
import type { Voter } from './voter.ts';

const ACQUIRE = 'hookonce acquire';
const EXTEND = 'hookonce extend';
const RELEASE = 'hookonce release';
const sha = (text: string): string => createHash('sha1').update(text).digest('hex');
const OPERATIONS = new Map([
  [sha(ACQUIRE), 'acquire'],
  [sha(EXTEND), 'extend'],
  [sha(RELEASE), 'release'],
] as const);

/** redlock counts a vote for when the script answers the number of keys, and we always pass two. */
const FOR = 2;
/** One object for all votes against: making an error with its stack for each costs more than the vote. */
const AGAINST = new Error('the voter did not vote for this');

/** One claim round of one event: the votes, and after a win what its lock is made of. */
export class Ballot {
  readonly id: string;
  readonly handle: string;
  readonly lockMs: number;
  readonly recordMs: number;
  /** Chosen by redlock, fresh for every round. */
  token = '';
  /** By list of voters. */
  readonly locks: (Lock | undefined)[] = [];
  /** How the next extension and release are to be made. */
  unknown = false;
  takeBack = false;
  /** Released: the lock is not put back on any voter. */
  over = false;
  /** redlock's own releases, after a failed acquire, are none. */
  releasing = false;
  /** By voter. */
  readonly asked: Promise<Reply>[] = [];
  readonly claims: (Reply | undefined)[];
  /** Replies to the last extension, or release. */
  replies: Promise<Reply>[] = [];
  #wake: PromiseWithResolvers<void> | undefined;

  constructor(id: string, handle: string, voters: number, lockMs: number, recordMs: number) {
    this.id = id;
    this.handle = handle;
    this.lockMs = lockMs;
    this.recordMs = recordMs;
    this.claims = Array.from({ length: voters }, () => undefined);
  }

  record(index: number, reply: Reply): void {
    this.claims[index] = reply;
    this.#wake?.resolve();
    this.#wake = undefined;
  }

  /** Resolves with the next vote. */
  next(): Promise<void> {
    this.#wake ??= Promise.withResolvers();
    return this.#wake.promise;
  }
}

export class Ballots {
  readonly #voters: readonly Voter[];
  readonly #lists: readonly VoterList[] | undefined;
  readonly #redlocks: readonly Redlock[];
  readonly #open = new Map<string, Ballot>();
  #handles = 0;

  /** `lists`: while the set of voters changes. */
  constructor(voters: readonly Voter[], lists?: readonly VoterList[]) {
    this.#voters = voters;
    this.#lists = lists;
    const clients = voters.map((_, index) => {
      // Several of them for each delivery: every promise more is felt.
      const vote = (script: string, _keys: number, [, handle, token, ms]: string[]): Promise<number> =>
        this.#vote(script, index, this.#open.get(handle!)!, token!, Number(ms));
      return { evalsha: vote, eval: vote, quit: async () => 'OK' };
    });
    const counted = lists?.map(({ places }) => places.map((place) => clients[place])) ?? [clients];
    this.#redlocks = counted.map(
      (each) =>
        new Redlock(
          each as unknown as Redis[],
          { retryCount: 0 },
          { acquireScript: () => ACQUIRE, extendScript: () => EXTEND, releaseScript: () => RELEASE },
        ),
    );
  }

  /** Starts a claim round. The votes come in by themselves; `verdict` is redlock's count: whether a quorum voted for it. */
  acquire(id: string, lockMs: number, recordMs: number): { ballot: Ballot; verdict: Promise<boolean> } {
    this.#handles += 1;
    const ballot = new Ballot(id, String(this.#handles), this.#voters.length, lockMs, recordMs);
    const verdict = this.#counted(ballot, async (redlock, list) => {
      ballot.locks[list] = await redlock.acquire([id, ballot.handle], lockMs, { retryCount: 0 });
    });
    return { ballot, verdict };
  }

  /** Extends a won lock by `ms` everywhere; true when a quorum still had it. */
  async extend(ballot: Ballot, ms: number): Promise<boolean> {
    if (!this.#acquired(ballot)) return false;
    ballot.replies = [];
    return await this.#counted(ballot, async (redlock, list) => {
      const lock = ballot.locks[list]!;
      lock.expiration = Infinity;
      ballot.locks[list] = await redlock.extend(lock, ms, { retryCount: 0 });
    });
  }

  /** Releases a won lock everywhere; true when a quorum still had it. */
  async release(ballot: Ballot): Promise<boolean> {
    if (!this.#acquired(ballot)) return false;
    ballot.replies = [];
    ballot.releasing = true;
    return await this.#counted(ballot, async (redlock, list) => {
      await redlock.release(ballot.locks[list]!, { retryCount: 0 });
    });
  }

  /** The votes as they count now: an ok of a voter that has started anew since counts no more. */
  votes(replies: readonly (Reply | undefined)[], id: string): Vote[] {
    return replies.map((reply, index) => {
      if (reply?.status !== 'ok') return reply;
      const voter = this.#voters[index]!;
      if (reply.counted) return voter.counts(reply, id) ? reply : { ...reply, counted: false };
      return this.#lists !== undefined && voter.isLearning(reply, id) ? { ...reply, learning: true } : reply;
    });
  }

  decide(replies: readonly (Reply | undefined)[], id: string): Decision {
    return decide(this.votes(replies, id), this.#lists);
  }

  /** Whether something holds for a majority of the voters, of each list while there are two. */
  byMajorities(holds: (place: number, young: boolean) => boolean): boolean {
    return byMajorities(this.#voters.length, this.#lists, holds);
  }

  #acquired({ locks }: Ballot): boolean {
    return locks.length === this.#redlocks.length && locks.every((lock) => lock !== undefined);
  }

  async #counted(ballot: Ballot, run: (redlock: Redlock, list: number) => Promise<void>): Promise<boolean> {
    this.#open.set(ballot.handle, ballot);
    try {
      if (this.#redlocks.length === 1) {
        await run(this.#redlocks[0]!, 0);
        return true;
      }
      const all = await Promise.allSettled(this.#redlocks.map(run));
      for (const each of all) if (each.status === 'rejected') throw each.reason;
      return true;
    } catch (error) {
      if (error instanceof ExecutionError) return false;
      throw error;
    } finally {
      this.#open.delete(ballot.handle);
    }
  }

  async #vote(script: string, index: number, ballot: Ballot, token: string, ms: number): Promise<number> {
    const voter = this.#voters[index]!;
    const { id } = ballot;
    const operation = OPERATIONS.get(script);
    switch (operation) {
      case 'acquire': {
        if (ballot.token === '') ballot.token = token;
        ballot.asked[index] ??= voter.ask({
          op: 'claim',
          id,
          token: ballot.token,
          lockMs: ms,
          recordMs: ballot.recordMs,
        });
        const reply = await ballot.asked[index];
        if (ballot.claims[index] === undefined) ballot.record(index, reply);
        if (reply.status !== 'ok') throw AGAINST;
        if (reply.counted ? voter.counts(reply, id) : this.#lists && voter.isLearning(reply, id)) return FOR;
        throw AGAINST;
      }
      case 'extend': {
        const { unknown } = ballot;
        const reply = (ballot.replies[index] ??= voter.ask({
          op: 'extend',
          id,
          token: ballot.token,
          lockMs: ms,
          unknown,
        }));
        if ((await reply).status === 'ok') return FOR;
        throw AGAINST;
      }
      case 'release': {
        // redlock's own clean-up after a failed acquire: the claim does it, knowing what each voter said.
        if (!ballot.releasing) return FOR;
        const { takeBack } = ballot;
        const reply = (ballot.replies[index] ??= voter.ask({ op: 'release', id, token: ballot.token, takeBack }));
        if ((await reply).status === 'ok') return FOR;
        throw AGAINST;
      }
      case undefined:
        throw new Error(`redlock ran a script that is not ours: ${script}`);
    }
  }
}

/** Waits for answers one by one: the first verdict that is not undefined, or undefined when all are in without one. */
export function gather<T>(asked: readonly Promise<void>[], verdict: () => T | undefined): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    let open = asked.length;
    let over = false;
    const look = (): void => {
      if (over) return;
      const found = verdict();
      if (found === undefined && open > 0) return;
      over = true;
      resolve(found);
    };
    for (const ask of asked) {
      ask
        .then(() => {
          open -= 1;
          look();
        })
        .catch(reject);
    }
    look();
  });
}
