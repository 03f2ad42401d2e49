import type { DeliveryKey } from '../core/delivery.ts';
import type { Clock, Lease } from '../core/ports.ts';
import type { Ballot } from './ballots.ts';
import { drift } from './items.ts';

/** What a claim that was won is made of. */
export class QuorumLease implements Lease {
  readonly key: DeliveryKey;
  attempt: number;
  readonly retentionMs: number;
  readonly startedMs: number;
  readonly ballot: Ballot;
  readonly memorySinceMs: number | undefined;
  validUntilMs: number;
  /** Without a quorum: nothing that could be valid, but a token on the voters that answered. */
  readonly partial: boolean;
  readonly #clock: Clock;
  readonly #minWorkMs: number;

  constructor(
    key: DeliveryKey,
    attempt: number,
    retentionMs: number,
    startedMs: number,
    ballot: Ballot,
    memorySinceMs: number | undefined,
    clock: Clock,
    partial = false,
  ) {
    this.key = key;
    this.attempt = attempt;
    this.retentionMs = retentionMs;
    this.startedMs = startedMs;
    this.ballot = ballot;
    this.memorySinceMs = memorySinceMs;
    this.partial = partial;
    this.validUntilMs = partial ? -Infinity : startedMs + ballot.lockMs - drift(ballot.lockMs);
    this.#clock = clock;
    this.#minWorkMs = ballot.lockMs / 3;
  }

  validForMs(): number {
    return this.validUntilMs - this.#clock.now();
  }

  mayStart(): boolean {
    return this.validForMs() > this.#minWorkMs;
  }
}
