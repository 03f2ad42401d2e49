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
 */
import { createHash } from 'node:crypto';
import Redlock, { ExecutionError, type Lock } from 'redlock';
import type { Redis } from 'ioredis';
import { quorumOf, type Vote } from './decide.ts';
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
  lock: Lock | undefined;
  /** How the next extension and release are to be made. */
  unknown = false;
  takeBack = false;
  /** Released: the lock is not put back on any voter. */
  over = false;
  readonly claims: (Reply | undefined)[];
  /** Replies to the last extension, or release. */
  replies: Promise<Reply>[] = [];
  #wake: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(id: string, handle: string, voters: number, lockMs: number, recordMs: number) {
    this.id = id;
    this.handle = handle;
    this.lockMs = lockMs;
    this.recordMs = recordMs;
    this.claims = Array.from({ length: voters }, () => undefined);
  }

  record(index: number, reply: Reply): void {
    this.claims[index] = reply;
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  /** Resolves with the next vote. */
  next(): Promise<void> {
    return this.#wake.promise;
  }
}

export class Ballots {
  readonly #voters: readonly Voter[];
  readonly #redlock: Redlock;
  readonly #open = new Map<string, Ballot>();
  #handles = 0;

  constructor(voters: readonly Voter[]) {
    this.#voters = voters;
    const clients = voters.map((_, index) => {
      const vote = async (script: string, _keys: number, [, handle, token, ms]: string[]): Promise<number> =>
        await this.#vote(script, index, this.#open.get(handle!)!, token!, Number(ms));
      return { evalsha: vote, eval: vote, quit: async () => 'OK' };
    });
    this.#redlock = new Redlock(
      clients as unknown as Redis[],
      { retryCount: 0 },
      { acquireScript: () => ACQUIRE, extendScript: () => EXTEND, releaseScript: () => RELEASE },
    );
  }

  /** Starts a claim round. The votes come in by themselves; `verdict` is redlock's count: whether a quorum voted for it. */
  acquire(id: string, lockMs: number, recordMs: number): { ballot: Ballot; verdict: Promise<boolean> } {
    this.#handles += 1;
    const ballot = new Ballot(id, String(this.#handles), this.#voters.length, lockMs, recordMs);
    const verdict = this.#counted(ballot, async () => {
      ballot.lock = await this.#redlock.acquire([id, ballot.handle], lockMs, { retryCount: 0 });
    });
    return { ballot, verdict };
  }

  /** Extends a won lock by `ms` everywhere; true when a quorum still had it. */
  async extend(ballot: Ballot, ms: number): Promise<boolean> {
    const { lock } = ballot;
    if (!lock) return false;
    lock.expiration = Infinity;
    ballot.replies = [];
    return await this.#counted(ballot, async () => {
      ballot.lock = await this.#redlock.extend(lock, ms, { retryCount: 0 });
    });
  }

  /** Releases a won lock everywhere; true when a quorum still had it. */
  async release(ballot: Ballot): Promise<boolean> {
    const { lock } = ballot;
    if (!lock) return false;
    ballot.replies = [];
    return await this.#counted(ballot, async () => {
      await this.#redlock.release(lock, { retryCount: 0 });
    });
  }

  /** The votes as they count now: an ok of a voter that has started anew since counts no more. */
  votes(replies: readonly (Reply | undefined)[], id: string): Vote[] {
    return replies.map((reply, index) =>
      reply?.status === 'ok' && reply.counted && !this.#voters[index]!.counts(reply, id)
        ? { ...reply, counted: false }
        : reply,
    );
  }

  get quorum(): number {
    return quorumOf(this.#voters.length);
  }

  async #counted(ballot: Ballot, run: () => Promise<void>): Promise<boolean> {
    this.#open.set(ballot.handle, ballot);
    try {
      await run();
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
        ballot.token = token;
        const reply = await voter.ask({ op: 'claim', id, token, lockMs: ms, recordMs: ballot.recordMs });
        ballot.record(index, reply);
        if (reply.status === 'ok' && reply.counted && voter.counts(reply, id)) return FOR;
        throw AGAINST;
      }
      case 'extend': {
        const reply = voter.ask({ op: 'extend', id, token, lockMs: ms, unknown: ballot.unknown });
        ballot.replies[index] = reply;
        if ((await reply).status === 'ok') return FOR;
        throw AGAINST;
      }
      case 'release': {
        // redlock's own clean-up after a failed acquire: the claim does it, knowing what each voter said.
        if (!ballot.lock) return FOR;
        const reply = voter.ask({ op: 'release', id, token, takeBack: ballot.takeBack });
        ballot.replies[index] = reply;
        if ((await reply).status === 'ok') return FOR;
        throw AGAINST;
      }
      case undefined:
        throw new Error(`redlock ran a script that is not ours: ${script}`);
    }
  }
}

/** Waits for answers one by one: the first verdict that is not undefined, or undefined when all are in without one. */
export async function gather<T>(asked: readonly Promise<void>[], verdict: () => T | undefined): Promise<T | undefined> {
  const open = new Set<Promise<void>>();
  for (const ask of asked) {
    const one = ask.finally(() => open.delete(one));
    open.add(one);
  }
  for (;;) {
    const found = verdict();
    if (found !== undefined || open.size === 0) return found;
    await Promise.race(open);
  }
}
