/**
 * What happened in a run, and whether it may have. The promises, and everything that excuses from them:
 *
 * 1. **One owner.** While an attempt's lease is valid by its owner's clock, or the lock that it left behind for an
 *    unknown outcome lives on a quorum, nobody else wins the event and nobody else forwards it. An attempt whose
 *    definite failure has reached its gateway, or that never sent a byte, owns nothing any more. No excuse in lapses,
 *    deaths, cuts, nor in voters that forget, however many. *Excuse*: with `firstStart: trust`, *majority forgotten*
 *    (below) since the first was claimed: voters that are all empty look like a first start.
 * 2. **Once.** After an attempt was forwarded, another is forwarded only if the first ended in a definite failure, or
 *    in silence. Silence: its lease ran out before its gateway knew its completion on a quorum (gateway dead, late, or
 *    cut off from the voters; outcome unknown for longer than the lock that was left). Nobody wins who has been told of
 *    a completion by any voter. And once the gateway of the first knows its completion on a quorum, nobody whose decisive
 *    round (confirmation, or claim for attempt 1) began later forwards at all. *Excuse*: forgotten since that gateway
 *    last heard from its voters.
 * 3. **Attempts** rise strictly in the order of the first bytes; so 1 is given once. The application reads the number
 *    that was won. *Excuse*: forgotten since the first was claimed.
 *
 *    Forgotten: at one time a majority of the voters was learning (*majority forgotten*), or a gateway that had not reached
 *    a majority with its records for `recoverAfter` went on without (and said so); or a voter lost the end of its
 *    append-only file, and the gateway of the first attempt died or lapsed, so that it could not say again in time what
 *    it had written. A voter that forgets alone excuses nothing.
 * 4. **No loss.** A sender gets 2xx only after the application has succeeded. *No excuse.*
 * 5. **Truth.** Who is told that another attempt holds the event (and not that votes were split) is told so because
 *    some token was granted by a quorum whose lock was alive during the claim. *No excuse.*
 * 6. **Answers.** Every delivery is answered within the budgets (protocol section 10). *Excuse*: its gateway died or
 *    lapsed meanwhile.
 * 7. **The end.** When everything works again, every sender gets its 2xx within a few lives of a lock. And when a
 *    gateway took a completion for done, a quorum of voters shows the event as done. *Excuse* for the second half only,
 *    voter by voter: it has lost writes since that gateway last heard from it.
 * 8. **Locks.** None is put on a voter, or moved on, after its owner sent that voter the release; none is moved on
 *    after `maxHold`; none outlives the longest life. *No excuse.*
 * 9. **Holding on.** A lease does not run out by its owner's neglect: when it has run out under a forward and another is
 *    made, or its completion still goes on, its gateway had sent an extension within the beat before (a third of the
 *    lock's life and two deadlines). And who leaves an unknown outcome behind sends the extension that says so. *Excuse*: it died, lapsed, had left the
 *    lock behind, had given its completion up after `maxHold`, or knew of a voter that cannot be asked.
 * 10. **Quiet runs** (a minority of voters away, or restarting one after another): no lease is lost, the first forward is
 *    attempt 1 and there is no second. *Excuse* for the 1: a voter on hold has granted the event before; what it grants
 *    is never taken back.
 * 11. **Forget.** What an operator has had forgotten is void from its beginning on: 2 and 7 do not hold for it. After it
 *    was said to be forgotten, no claim that began later is told of it as done, and it is not said without a word of an
 *    attempt that holds the event. *Excuse*: of the first, a quorum has lost writes since, or fewer than a quorum
 *    has answered; of the second, a voter has lost writes since the claim.
 */
import type { Outcome } from '../../src/core/delivery.ts';
import type { ClaimResult } from '../../src/core/ports.ts';
import { quorumOf } from '../../src/redis/decide.ts';
import type { BatchAnswer, Item } from '../../src/redis/items.ts';
import type { QuorumLease } from '../../src/redis/quorum-lease.ts';
import type { Forgetting } from '../../src/core/operator.ts';
import { Floors } from './floors.ts';
import { describe, isWatched, type Actor, type Attempt } from './attempt.ts';
import { noCounts } from './counts.ts';
import { Locks } from './locks.ts';
import { Memory } from './memory.ts';
import type { VoterNode } from './node.ts';
import type { Plan } from './plan.ts';
import type { SimLink, Traffic } from './sim-link.ts';
import { spoken } from './spoken.ts';

export class History implements Traffic {
  readonly violations: string[] = [];
  readonly counts = noCounts();
  /** Called after a batch was run and before the voter replies. */
  afterRan: (link: SimLink, batch: readonly Item[]) => void = () => {};
  readonly #plan: Plan;
  readonly #nodes: readonly VoterNode[];
  readonly #now: () => number;
  /** Says what happens, where somebody wants to read it. */
  readonly trace: ((who: string, text: string) => void) | undefined;
  readonly #locks: Locks;
  readonly #memory: Memory;
  readonly #floors: Floors;
  readonly #attempts: Attempt[] = [];
  readonly #byToken = new Map<string, Attempt>();
  /** By gateway, then voter: when the last reply that it has heard was made. */
  readonly #heardMs = new Map<string, number[]>();
  #firstSuccessMs: number | undefined;

  constructor(plan: Plan, nodes: readonly VoterNode[], now: () => number, trace?: (who: string, text: string) => void) {
    this.#plan = plan;
    this.#nodes = nodes;
    this.#now = now;
    this.trace = trace;
    this.#locks = new Locks(plan.voters, now);
    this.#memory = new Memory(nodes, now);
    this.#floors = new Floors(this.#memory, plan.voters, now);
  }

  violation(text: string): void {
    this.trace?.('', `VIOLATION ${text}`);
    this.violations.push(text);
  }

  // ---- the protocol

  claimed(by: Actor, result: ClaimResult, startedMs: number): void {
    this.counts.claims += 1;
    switch (result.kind) {
      case 'held':
        if (result.split) this.counts.split += 1;
        else this.counts.held += 1;
        if (!result.split && !this.#locks.hadOwner(startedMs))
          this.violation(`5 ${by.name} was told of an owner, and there was none`);
        break;
      case 'done':
        this.counts.duplicates += 1;
        if (this.#floors.wasToldVoid(by.name, startedMs))
          this.violation(`11 ${by.name} was told of a completion that was forgotten`);
        break;
      case 'unavailable':
        this.counts.unavailable += 1;
        break;
      case 'won':
        this.counts.won += 1;
        break;
    }
    this.trace?.(by.name, `claim: ${result.kind}${result.kind === 'won' ? ` attempt ${result.lease.attempt}` : ''}`);
  }

  won(lease: QuorumLease, by: Actor): Attempt {
    const { startedMs: extendedMs } = lease;
    const attempt: Attempt = { lease, by, wonMs: this.#now(), extendedMs, lapsedMs: by.lapsedMs };
    for (const other of this.#attempts) {
      if (this.#owns(other))
        this.violation(`1 ${by.name} won attempt ${lease.attempt} while ${describe(other)} is valid`);
    }
    if (lease.ballot.claims.some((claim) => claim?.status === 'done' && !this.#floors.mayBeVoid(claim.attempt)))
      this.violation(`2 ${by.name} won although a voter had said done`);
    this.#attempts.push(attempt);
    this.#byToken.set(lease.ballot.token, attempt);
    if (lease.attempt > 1) this.counts.confirmed += 1;
    return attempt;
  }

  forwarded(attempt: Attempt, labelled: number): void {
    const nowMs = this.#now();
    const number = attempt.lease.attempt;
    const earlier = this.#attempts.filter((other) => other !== attempt && other.forwardedMs !== undefined);
    attempt.forwardedMs = nowMs;
    this.counts.forwards += 1;
    this.trace?.(attempt.by.name, `FORWARD attempt ${number}`);
    if (labelled !== number) this.violation(`3 attempt ${number} was sent as ${labelled}`);
    for (const other of earlier) {
      if (this.#owns(other)) this.violation(`1 ${describe(attempt)} is forwarded while ${describe(other)} is valid`);
      if (this.#concludedBefore(other, attempt))
        this.violation(`2 ${describe(attempt)} is forwarded although ${describe(other)} was done`);
      this.#checkKept(other);
      if (number <= other.lease.attempt && !this.#memory.isForgotten(other, other.lease.startedMs)) {
        this.violation(`3 attempt ${number} is forwarded after attempt ${other.lease.attempt}`);
      }
    }
    if (earlier.some((other) => other.endedMs === undefined)) this.counts.repeated += 1;
    if (earlier.length === 0 && number !== 1) this.counts.mislabelled += 1;
    if (this.#plan.quiet && (earlier.length > 0 || (number !== 1 && !this.#locks.grantedOnHold)))
      this.violation(`10 attempt ${number} in a quiet run`);
  }

  /** Never sent. */
  ended(attempt: Attempt, why: string): void {
    attempt.endedMs = this.#now();
    if (why === 'expired') this.counts.expired += 1;
    this.trace?.(attempt.by.name, `attempt ${attempt.lease.attempt} not sent: ${why}`);
  }

  unknown(attempt: Attempt, how: string): void {
    attempt.unknownMs = this.#now();
    this.trace?.(attempt.by.name, `attempt ${attempt.lease.attempt}: no answer (${how})`);
  }

  /** The application has acted, whether or not anybody hears of it. */
  acted(attempt: Attempt, status: number): void {
    this.trace?.('app', `attempt ${attempt.lease.attempt} of ${attempt.by.name}: ${status}`);
    if (status !== 200) return;
    if (this.#firstSuccessMs !== undefined) this.counts.doubles += 1;
    this.#firstSuccessMs ??= this.#now();
  }

  answered(attempt: Attempt, status: number): void {
    this.trace?.(attempt.by.name, `attempt ${attempt.lease.attempt} answered ${status}`);
    if (status !== 200) attempt.endedMs = this.#now();
  }

  /** The gateway takes its completion for done on a quorum. */
  concluded(attempt: Attempt): void {
    attempt.concludedMs = this.#now();
    attempt.heardMs = this.#heard(attempt.by.name).slice();
    this.trace?.(attempt.by.name, `attempt ${attempt.lease.attempt} is complete`);
  }

  gaveUp(attempt: Attempt): void {
    attempt.gaveUpMs = this.#now();
    this.trace?.(attempt.by.name, `attempt ${attempt.lease.attempt}: completion given up`);
  }

  lost(by: Actor): void {
    this.counts.lost += 1;
    this.trace?.(by.name, 'lost its lock');
    if (this.#plan.quiet) this.violation(`10 ${by.name} lost its lock in a quiet run`);
  }

  /** An operator's command has come to its end. */
  forgot(by: Actor, result: Forgetting, startedMs: number, force: boolean): void {
    const text = result.kind === 'forgotten' ? `${result.kind} up to attempt ${result.attempt}` : result.kind;
    this.trace?.(by.name, `forget: ${text}`);
    if (result.kind !== 'forgotten') return;
    this.counts.forgotten += 1;
    if (result.running && !force) this.violation(`11 ${by.name} had a running attempt forgotten without force`);
    this.#floors.forgot(result.attempt, startedMs);
    const owner = this.#attempts.find((attempt) => attempt.wonMs < startedMs && this.#owns(attempt));
    const haveAll = (sinceMs: number): boolean =>
      this.#nodes.every(({ index }) => !this.#memory.hasLost(index, sinceMs));
    if (owner && !result.running && haveAll(owner.lease.startedMs))
      this.violation(`11 ${by.name} had the event forgotten while ${describe(owner)} is valid, and did not say so`);
  }

  toSender(by: Actor, outcome: Outcome, startedMs: number, lapsedMs: number): void {
    const { copyWaitMs, budgetMs, maxWaitMs, upstreamTimeoutMs, voterTimeoutMs } = this.#plan;
    const success = outcome.kind === 'delivered' || outcome.kind === 'duplicate';
    this.trace?.(by.name, `answers ${outcome.kind}`);
    if (success && this.#firstSuccessMs === undefined)
      this.violation(`4 ${by.name} answered ${outcome.kind} before any success`);
    const tookMs = this.#now() - startedMs;
    const allowedMs = copyWaitMs + 2 * budgetMs + maxWaitMs + upstreamTimeoutMs + 3 * voterTimeoutMs;
    if (by.lapsedMs === lapsedMs && tookMs > allowedMs)
      this.violation(`6 ${by.name} took ${tookMs.toFixed(0)} ms, ${allowedMs} allowed`);
  }

  /** `satisfied`: whether all senders have had their success. */
  ends(satisfied: boolean, id: string): void {
    if (!satisfied) return this.violation('7 a sender is still without success long after everything works again');
    const shown = this.#nodes.map((node) => node.look(id));
    const longestMs = Math.max(this.#plan.lockTtlMs, this.#plan.unknownHoldMs);
    for (const [index, answer] of shown.entries()) {
      if (answer.status === 'held' && answer.leftMs > longestMs * 1.01)
        this.violation(`8 a lock on v${index} has ${answer.leftMs} ms left`);
    }
    for (const attempt of this.#attempts) {
      if (attempt.concludedMs === undefined || this.#floors.mayBeVoid(attempt.lease.attempt)) continue;
      const { heardMs } = attempt;
      const isFine = (voter: number): boolean =>
        shown[voter]!.status === 'done' || this.#memory.hasLost(voter, heardMs![voter]!);
      const fine = shown.filter((_, voter) => isFine(voter)).length;
      if (fine < quorumOf(shown.length))
        this.violation(`7 ${describe(attempt)} was taken for done, and ${fine} voters show it`);
    }
  }

  // ---- the traffic

  sent(link: SimLink, batch: readonly Item[]): void {
    for (const item of batch) {
      if (item.op === 'learn') this.#floors.sent(item.floor);
      if (!('token' in item) || item.op === 'sync') continue;
      if (item.op === 'claim') this.#floors.asked(link.gateway, item.token);
      if (!this.#locks.sent(link, item))
        this.violation(`8 ${link.gateway} sent ${item.op} to ${link.node.name} after the release`);
      const attempt = this.#byToken.get(item.token);
      if (attempt === undefined) continue;
      if (item.op === 'extend' || item.op === 'heal') this.#checkHold(attempt);
      if (item.op === 'extend') attempt.extendedMs = this.#now();
      if (item.op !== 'complete') continue;
      this.#checkKept(attempt);
      attempt.completingMs ??= this.#now();
    }
  }

  ran(link: SimLink, batch: readonly Item[], answer: BatchAnswer, connection: object): void {
    batch.forEach((item, index) => {
      const given = answer.answers[index]!;
      if (item.op === 'extend') this.#checkOwners();
      this.trace?.(`${link.gateway}→${link.node.name}`, spoken(item, given, answer.held));
      if (item.op === 'admit' && item.lostWallMs > 0 && given.status === 'hello') this.#memory.wentOn();
      if (!('token' in item) || item.op === 'sync') return;
      if (given.status === 'ok') this.#locks.ran(link.node.index, item, answer);
      if (!this.#locks.inOrder(connection, item, given))
        this.violation(`8 the release of ${link.gateway} on ${link.node.name} overtook its ${item.op}`);
    });
    this.afterRan(link, batch);
  }

  replied(link: SimLink, ranAtMs: number): void {
    this.#heard(link.gateway)[link.node.index] = ranAtMs;
  }

  heard(batch: readonly Item[], { answers }: BatchAnswer): void {
    batch.forEach((item, index) => {
      if (item.op === 'claim' || item.op === 'confirm') this.#floors.told(item.token, answers[index]!);
    });
  }

  // ---- what the promises mean

  #owns(attempt: Attempt): boolean {
    const { lease, endedMs, concludedMs } = attempt;
    if (endedMs !== undefined || concludedMs !== undefined) return false;
    // Its completion is refused and takes the lock with it.
    if (attempt.completingMs !== undefined && this.#floors.mayBeVoid(lease.attempt)) return false;
    if (this.#plan.firstStart === 'trust' && this.#memory.majorityForgot(lease.startedMs)) return false;
    return this.#locks.protectedUntilMs(lease) > this.#now();
  }

  #checkOwners(): void {
    const owners = this.#attempts.filter((attempt) => this.#owns(attempt));
    if (owners.length > 1) this.violation(`1 ${owners.map(describe).join(' and ')} are both valid`);
  }

  #concludedBefore(done: Attempt, later: Attempt): boolean {
    const { concludedMs, heardMs } = done;
    if (concludedMs === undefined || this.#floors.mayBeVoid(done.lease.attempt)) return false;
    const isSilent = this.#locks.protectedUntilMs(done.lease) < concludedMs;
    if (isSilent && this.#locks.decisiveMs(later.lease) < concludedMs) return false;
    return !this.#memory.isForgotten(done, Math.min(...heardMs!));
  }

  #checkHold({ lease, by }: Attempt): void {
    const { maxHoldMs, budgetMs, voterTimeoutMs } = this.#plan;
    const overMs = this.#now() - (lease.startedMs + maxHoldMs + budgetMs + 3 * voterTimeoutMs + by.lapsedMs);
    if (overMs > 0) this.violation(`8 ${by.name} moves its lock on ${overMs.toFixed(0)} ms after maxHold`);
  }

  /** Whether an attempt that is over without an end was held on to for as long as it could be. */
  #checkKept(attempt: Attempt): void {
    const { by, lease, unknownMs } = attempt;
    const ended = attempt.endedMs ?? attempt.concludedMs ?? attempt.gaveUpMs;
    if (ended !== undefined || !isWatched(attempt) || lease.validUntilMs > this.#now()) return;
    const { lockTtlMs, voterTimeoutMs } = this.#plan;
    if (unknownMs !== undefined) {
      const isDue = this.#now() > unknownMs + 2 * voterTimeoutMs && by.refusedMs < unknownMs;
      if (isDue && !this.#locks.saidUnknown(lease))
        this.violation(`9 ${describe(attempt)} left no word that its outcome is unknown`);
    } else if (Math.max(attempt.extendedMs, by.refusedMs) < lease.validUntilMs - lockTtlMs / 3 - 2 * voterTimeoutMs) {
      this.violation(`9 ${describe(attempt)} ran out without being extended`);
    }
  }

  #heard(gateway: string): number[] {
    const heard = this.#heardMs.get(gateway) ?? this.#nodes.map(() => 0);
    this.#heardMs.set(gateway, heard);
    return heard;
  }
}
