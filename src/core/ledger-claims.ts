/**
 * Claims on the voters, with the ledger's row as the final word (protocol section 11): whatever the voters forgot, the
 * second insert finds the row.
 *
 * | voters      | ledger       | result                                                                    |
 * | done, held  | not asked    | that: a copy that the voters know costs the database nothing; where no     |
 * |             |              | other gateway asks these voters, the ledger is asked all the same         |
 * | won         | ours         | won; an attempt that the ledger counts higher is confirmed on the voters  |
 * | won         | done         | done, and the voters are taught it                                        |
 * | won         | held         | held; the locks are given back                                            |
 * | won         | no answer    | `onDown`: won without a row, which is written later, or unavailable       |
 * | unavailable | done         | done: the rows answer while the voters do not                             |
 * | unavailable | ours         | unavailable, unless the claim may be decided by the ledger `alone`        |
 *
 * Alone, the row's lease is what is held; the voters that answer are claimed as well, so that nobody else gets a
 * quorum of them meanwhile, and those that come back are told what has been done.
 */
import { randomBytes } from 'node:crypto';
import type { DeliveryKey, Done } from './delivery.ts';
import type { Behind, Due } from './ledger-behind.ts';
import { LedgerLease } from './ledger-lease.ts';
import type {
  ClaimResult,
  Claims,
  Clock,
  Completion,
  Events,
  Lease,
  Ledger,
  RowTaken,
  Standing,
  VersionChange,
  Versions,
  VersionStore,
  Votes,
} from './ports.ts';

export interface LedgerClaimsOptions {
  readonly lockTtlMs: number;
  readonly unknownHoldMs: number;
  readonly maxHoldMs: number;
  /** What becomes of claims that the voters grant while the ledger does not answer. */
  readonly onDown: 'proceed' | 'reject';
  /** Whether other gateways ask the same voters; otherwise the ledger alone knows of them. */
  readonly sharedVoters: boolean;
}

interface Parts {
  readonly votes: Votes;
  readonly ledger: Ledger;
  readonly behind: Behind;
  readonly options: LedgerClaimsOptions;
  readonly clock: Clock;
  readonly events: Events;
  /** Events that the voters take for free while another's row says otherwise; until when. */
  readonly heldByRow: Map<string, number>;
}

/** Events remembered as held, before those whose time is over are looked for. */
const SWEPT_AT = 1000;

const newest = (one: string, other: string): string => (one > other ? one : other);

export class LedgerClaims implements Claims, VersionStore {
  readonly #parts: Parts;
  readonly #votes: Votes;
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #isAlone: boolean;

  /** `alone`: without a quorum the ledger alone decides. */
  constructor(parts: Omit<Parts, 'heldByRow'> & Partial<Parts>, alone = false) {
    this.#parts = { heldByRow: new Map(), ...parts };
    this.#votes = parts.votes;
    this.#ledger = parts.ledger;
    this.#clock = parts.clock;
    this.#events = parts.events;
    this.#isAlone = alone;
  }

  /** The same, for routes that go on without a quorum. */
  alone(): LedgerClaims {
    return new LedgerClaims(this.#parts, true);
  }

  async claim(key: DeliveryKey, retentionMs: number): Promise<ClaimResult> {
    const claim = await this.#votes.claim(key, retentionMs, this.#isAlone);
    switch (claim.kind) {
      case 'done':
        return this.#parts.options.sharedVoters ? claim : await this.#stillDone(key, retentionMs, claim);
      case 'held':
        return this.#parts.options.sharedVoters ? claim : ((await this.#known(key)) ?? claim);
      case 'won':
        return await this.#ask(claim.lease, retentionMs, false);
      case 'unavailable':
        if (claim.partial) return await this.#ask(claim.partial, retentionMs, true);
        return (await this.#known(key)) ?? claim;
    }
  }

  /** One beat for both. A row that was lost to another changes nothing while a quorum of the voters is held. */
  async extend(lease: Lease): Promise<boolean> {
    const own = lease as LedgerLease;
    const sentMs = this.#clock.now();
    const wasValid = own.validForMs() > 0;
    const [voted, taken] = await Promise.all([this.#votes.extend(own.votes), this.#ledger.extend(own.row, false)]);
    if (!own.alone || !wasValid) return voted;
    // One that had run out may have been another's meanwhile: it does not become valid again.
    own.rowTold(taken, sentMs);
    return voted || taken.kind === 'ours';
  }

  async complete(lease: Lease, completion: Completion): Promise<void> {
    const own = lease as LedgerLease;
    const done: Done = { ...completion, wallMs: this.#clock.wall() };
    const due: Extract<Due, { kind: 'complete' }> = {
      kind: 'complete',
      lease: { ...own.row, keepMs: own.retentionMs },
      done,
    };
    if (!own.alone) {
      await Promise.all([this.#votes.complete(own.votes, completion), this.#write(due)]);
    } else if (await this.#write(due)) {
      // The row knows: voters that do not answer now are taught when they are asked again.
      this.#votes.teach(own.votes, done, own.attempt, own.retentionMs);
    } else {
      await this.#votes.complete(own.votes, completion);
    }
  }

  async release(lease: Lease, sent: boolean): Promise<void> {
    const own = lease as LedgerLease;
    await Promise.all([
      this.#votes.release(own.votes, sent),
      this.#write({ kind: 'release', lease: own.row, takeBack: !sent }),
    ]);
  }

  async leave(lease: Lease): Promise<void> {
    const { votes, row } = lease as LedgerLease;
    const [, taken] = await Promise.all([
      this.#votes.leave(votes),
      this.#ledger.extend({ ...row, leaseMs: this.#parts.options.unknownHoldMs }, true),
    ]);
    if (taken.kind === 'unavailable') this.#events.ledgerWriteFailed('extend');
  }

  /** Asks the ledger only where the voters cannot know better. */
  async peek(key: DeliveryKey): Promise<Standing> {
    const standing = await this.#votes.peek(key);
    const { heldByRow, options } = this.#parts;
    const isDoubted = !options.sharedVoters || (heldByRow.get(key.id) ?? 0) > this.#clock.now();
    if (!(standing.kind === 'free' && isDoubted) && standing.kind !== 'unavailable') return standing;
    const row = await this.#ledger.look(key.id);
    if (row === 'unavailable') return standing;
    if (row !== 'none' && row.done) return { kind: 'done', done: row.done };
    if (row !== 'none' && row.lease) return { kind: 'held', ...row.lease };
    heldByRow.delete(key.id);
    return { kind: 'free' };
  }

  /** Both know it: what one of them has forgotten, the other remembers. */
  async order(change: VersionChange): Promise<Versions | 'unavailable'> {
    const { ledger, behind, options } = this.#parts;
    const [voted, row] = await Promise.all([this.#votes.order(change), ledger.order(change)]);
    if (row === 'unavailable') {
      if (voted === 'unavailable' || options.onDown === 'reject') return 'unavailable';
      this.#events.ledgerWriteFailed('order');
      const newer = change.applied > voted.applied ? change.applied : voted.applied;
      behind.add({ kind: 'order', change: { ...change, applied: newer } });
      return voted;
    }
    if (voted === 'unavailable') return this.#isAlone ? row : 'unavailable';
    return { applied: newest(voted.applied, row.applied), pending: newest(voted.pending, row.pending) };
  }

  async #ask(votes: Lease, retentionMs: number, alone: boolean): Promise<ClaimResult> {
    const { lockTtlMs, maxHoldMs } = this.#parts.options;
    const asked = {
      id: votes.key.id,
      token: randomBytes(12).toString('base64url'),
      attempt: votes.attempt,
      leaseMs: lockTtlMs,
      keepMs: Math.max(retentionMs, maxHoldMs + lockTtlMs),
    };
    const sentMs = this.#clock.now();
    const taken = await this.#ledger.take(asked);
    switch (taken.kind) {
      case 'ours': {
        const lease = new LedgerLease(votes, { ...asked, attempt: taken.attempt }, retentionMs, alone, this.#clock);
        lease.rowTold(taken, sentMs);
        return await this.#agreed(lease);
      }
      case 'done':
        this.#events.ledgerVerdict('done');
        this.#votes.teach(votes, taken.done, taken.attempt, taken.leftMs);
        return { kind: 'done', done: taken.done };
      case 'held':
        this.#events.ledgerVerdict('held');
        await this.#votes.release(votes, false);
        this.#remember(asked.id, taken.leftMs);
        return { kind: 'held', leftMs: taken.leftMs, unknown: taken.unknown, split: false };
      case 'unavailable':
        return await this.#unanswered(new LedgerLease(votes, asked, retentionMs, alone, this.#clock), taken);
    }
  }

  async #agreed(lease: LedgerLease): Promise<ClaimResult> {
    this.#events.ledgerVerdict(lease.alone ? 'alone' : 'agreed');
    if (lease.attempt > lease.votes.attempt) {
      const raised = await this.#votes.raise(lease.votes, lease.attempt);
      if (typeof raised === 'object') {
        const { done } = raised;
        await this.#write({ kind: 'complete', lease: { ...lease.row, keepMs: lease.retentionMs }, done });
        return raised;
      }
      if (raised === 'lost' && !lease.alone) {
        await this.release(lease, false);
        return { kind: 'held', leftMs: 0, unknown: false, split: true };
      }
    }
    return { kind: 'won', lease };
  }

  async #unanswered(lease: LedgerLease, { asked }: Extract<RowTaken, { kind: 'unavailable' }>): Promise<ClaimResult> {
    if (!lease.alone && this.#parts.options.onDown === 'proceed') {
      this.#events.ledgerVerdict('skipped');
      this.#events.ledgerWriteFailed('take');
      return { kind: 'won', lease };
    }
    this.#events.ledgerVerdict('refused');
    await this.#votes.release(lease.votes, false);
    if (asked) this.#parts.behind.add({ kind: 'release', lease: lease.row, takeBack: true });
    return { kind: 'unavailable' };
  }

  /** What the voters cannot know: an event that the ledger knows to be done is a duplicate all the same. */
  async #known(key: DeliveryKey): Promise<Extract<ClaimResult, { kind: 'done' }> | undefined> {
    const row = await this.#parts.ledger.look(key.id);
    return typeof row === 'object' && row.done ? { kind: 'done', done: row.done } : undefined;
  }

  /**
   * What voters that nobody else asks know to be done may have been forgotten at another gateway, or on the command
   * line: the row's floor says so. Nothing else in the row counts against them, as it may not have been written yet.
   */
  async #stillDone(
    key: DeliveryKey,
    retentionMs: number,
    claim: Extract<ClaimResult, { kind: 'done' }>,
  ): Promise<ClaimResult> {
    const row = await this.#ledger.look(key.id);
    if (row === 'unavailable') return this.#parts.options.onDown === 'proceed' ? claim : { kind: 'unavailable' };
    if (row === 'none' || row.done || row.floor === 0) return claim;
    await this.#votes.forgotten(key, row.floor, row.leftMs);
    const again = await this.#votes.claim(key, retentionMs, this.#isAlone);
    return again.kind === 'won' ? await this.#ask(again.lease, retentionMs, false) : again;
  }

  /** Once now; what fails is carried on with in the background. */
  async #write(due: Exclude<Due, { kind: 'order' }>): Promise<boolean> {
    const written =
      due.kind === 'complete'
        ? (await this.#ledger.complete(due.lease, due.done)) !== 'unavailable'
        : await this.#ledger.release(due.lease, due.takeBack);
    if (!written) {
      this.#events.ledgerWriteFailed(due.kind);
      this.#parts.behind.add(due);
    }
    return written;
  }

  #remember(id: string, leftMs: number): void {
    const { heldByRow } = this.#parts;
    const nowMs = this.#clock.now();
    if (heldByRow.size >= SWEPT_AT)
      for (const [known, untilMs] of heldByRow) if (untilMs <= nowMs) heldByRow.delete(known);
    heldByRow.set(id, nowMs + leftMs);
  }
}
