/** What the voters have forgotten, and when: the only excuse that the voters give. */
import { quorumOf } from '../../src/redis/decide.ts';
import { isWatched, type Attempt } from './attempt.ts';
import type { VoterNode } from './node.ts';

export class Memory {
  readonly #nodes: readonly VoterNode[];
  readonly #now: () => number;
  readonly #majorityForgotMs: number[] = [];

  constructor(nodes: readonly VoterNode[], now: () => number) {
    this.#nodes = nodes;
    this.#now = now;
    for (const node of nodes) node.onLoss = () => this.#count();
  }

  /** A gateway had not reached a majority with its records for `recoverAfter`, and went on without. */
  wentOn(): void {
    this.#majorityForgotMs.push(this.#now());
  }

  /** Whether fewer than a quorum had their records at some time after the given instant. */
  majorityForgot(sinceMs: number): boolean {
    return this.#majorityForgotMs.some((forgotMs) => forgotMs >= sinceMs);
  }

  /** Whether what an attempt has written since the given instant may be known to fewer than a quorum. */
  isForgotten(attempt: Attempt, sinceMs: number): boolean {
    const wasCut = this.#nodes.some((node) => node.cutAtMs.some((cutMs) => cutMs >= sinceMs));
    return (!isWatched(attempt) && wasCut) || this.majorityForgot(sinceMs);
  }

  /** Whether a voter has lost anything that it wrote since. */
  hasLost(voter: number, sinceMs: number): boolean {
    return this.#nodes[voter]!.forgotAtMs.some((forgotMs) => forgotMs >= sinceMs);
  }

  /** Whether a quorum still has whatever every voter had written then. */
  isKept(sinceMs: number): boolean {
    const kept = this.#nodes.filter((node) => !this.hasLost(node.index, sinceMs)).length;
    return kept >= quorumOf(this.#nodes.length) && !this.majorityForgot(sinceMs);
  }

  #count(): void {
    if (this.#nodes.filter((node) => node.learning).length >= quorumOf(this.#nodes.length)) this.wentOn();
  }
}
