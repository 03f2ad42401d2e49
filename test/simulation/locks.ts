/** What the traffic shows of locks: by token, as the voters granted, moved and dropped them. */
import { quorumOf } from '../../src/redis/decide.ts';
import { drift, type Answer, type BatchAnswer, type Item } from '../../src/redis/items.ts';
import type { QuorumLease } from '../../src/redis/quorum-lease.ts';
import type { SimLink } from './sim-link.ts';

type Owned = Extract<Item, { token: string }>;

interface Lock {
  /** Voters that ever granted it, and until when the longest-lived of these grants lived. */
  readonly granted: Set<number>;
  untilMs: number;
  /** By voter: until when the lock that was left for an unknown outcome lives there. */
  readonly left: Map<number, number>;
  confirmedMs: number | undefined;
  saidUnknown: boolean;
  /** Voters to which its owner has sent the release. */
  readonly givenUp: Set<number>;
  /** Connections on which a voter has got the release, and which item of its owner that was. */
  readonly releasedOn: Map<object, number>;
}

export class Locks {
  readonly #quorum: number;
  readonly #now: () => number;
  readonly #locks = new Map<string, Lock>();
  /** Items in the order in which they were first sent. */
  readonly #sent = new WeakMap<Item, number>();
  #count = 0;
  /** A voter on hold has granted the event: what it grants is never taken back. */
  grantedOnHold = false;

  constructor(voters: number, now: () => number) {
    this.#quorum = quorumOf(voters);
    this.#now = now;
  }

  /** False for a claim sent a second time, or a heal, after the release that its owner has sent to the same voter. */
  sent(link: SimLink, item: Owned): boolean {
    const lock = this.#of(item.token);
    const isNew = !this.#sent.has(item);
    if (isNew) this.#sent.set(item, (this.#count += 1));
    if (item.op === 'claim' && isNew) lock.givenUp.delete(link.node.index);
    if (item.op === 'release') lock.givenUp.add(link.node.index);
    if (item.op === 'confirm') lock.confirmedMs ??= this.#now();
    if (item.op === 'extend' && item.unknown) lock.saidUnknown = true;
    const puts = item.op === 'heal' || item.op === 'claim';
    return !puts || !lock.givenUp.has(link.node.index);
  }

  ran(voter: number, item: Owned, answer: BatchAnswer): void {
    const lock = this.#of(item.token);
    if (item.op === 'claim' && answer.held) this.grantedOnHold = true;
    if (item.op === 'claim' || item.op === 'extend') {
      lock.granted.add(voter);
      lock.untilMs = Math.max(lock.untilMs, this.#now() + item.lockMs);
    }
    if (item.op === 'extend' && (item.unknown || lock.left.size > 0))
      lock.left.set(voter, this.#now() + item.lockMs - drift(item.lockMs));
    if (item.op === 'complete' || item.op === 'release') lock.left.delete(voter);
  }

  /** False for a lock that is granted after the release that was sent later, on the same connection. */
  inOrder(connection: object, item: Owned, answer: Answer): boolean {
    const { releasedOn } = this.#of(item.token);
    const sent = this.#sent.get(item)!;
    if (item.op === 'release') releasedOn.set(connection, sent);
    const puts = (item.op === 'claim' || item.op === 'heal') && answer.status === 'ok';
    return !puts || (releasedOn.get(connection) ?? 0) < sent;
  }

  /** Until when the lock is known to be kept: by the lease, or left behind on a quorum. */
  protectedUntilMs({ ballot, validUntilMs }: QuorumLease): number {
    const { left } = this.#of(ballot.token);
    if (left.size < this.#quorum) return validUntilMs;
    const lives = [...left.values()].sort((a, b) => b - a);
    return Math.max(validUntilMs, lives[this.#quorum - 1]!);
  }

  /** When the round began that decided: the confirmation, or the claim of attempt 1. */
  decisiveMs({ ballot, startedMs }: QuorumLease): number {
    return this.#of(ballot.token).confirmedMs ?? startedMs;
  }

  saidUnknown({ ballot }: QuorumLease): boolean {
    return this.#of(ballot.token).saidUnknown;
  }

  /** Whether somebody had a quorum whose lock was alive then, or later. */
  hadOwner(sinceMs: number): boolean {
    return [...this.#locks.values()].some(
      (lock) => lock.granted.size >= this.#quorum && lock.untilMs * 1.01 >= sinceMs,
    );
  }

  #of(token: string): Lock {
    const known = this.#locks.get(token);
    if (known) return known;
    const lock: Lock = {
      granted: new Set(),
      untilMs: 0,
      left: new Map(),
      confirmedMs: undefined,
      saidUnknown: false,
      givenUp: new Set(),
      releasedOn: new Map(),
    };
    this.#locks.set(token, lock);
    return lock;
  }
}
