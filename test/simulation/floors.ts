/** What an operator has had forgotten, and which claims were told otherwise. */
import { quorumOf } from '../../src/redis/decide.ts';
import type { Answer } from '../../src/redis/items.ts';
import type { Memory } from './memory.ts';

/** A round of a claim, as its gateway has heard of it. */
interface Round {
  readonly gateway: string;
  readonly askedMs: number;
  answers: number;
  /** The highest attempt that a voter has called done. */
  done: number;
}

export class Floors {
  readonly #memory: Memory;
  readonly #quorum: number;
  readonly #now: () => number;
  readonly #rounds = new Map<string, Round>();
  readonly #forgotten: { readonly floor: number; readonly sinceMs: number; readonly saidMs: number }[] = [];
  #highestSent = 0;

  constructor(memory: Memory, voters: number, now: () => number) {
    this.#memory = memory;
    this.#quorum = quorumOf(voters);
    this.#now = now;
  }

  sent(floor: number): void {
    this.#highestSent = Math.max(this.#highestSent, floor);
  }

  forgot(floor: number, sinceMs: number): void {
    this.#forgotten.push({ floor, sinceMs, saidMs: this.#now() });
  }

  /** Whether a completion of this attempt may be void on some voter: nobody can rely on it any more. */
  mayBeVoid(attempt: number): boolean {
    return attempt <= this.#highestSent;
  }

  asked(gateway: string, token: string): void {
    if (!this.#rounds.has(token)) this.#rounds.set(token, { gateway, askedMs: this.#now(), answers: 0, done: 0 });
  }

  told(token: string, answer: Answer): void {
    const round = this.#rounds.get(token)!;
    round.answers += 1;
    if (answer.status === 'done') round.done = Math.max(round.done, answer.attempt);
  }

  /** Whether a gateway's claim since the given instant was told by a quorum of what had been forgotten before. */
  wasToldVoid(gateway: string, startedMs: number): boolean {
    const before = this.#forgotten.filter(({ saidMs, sinceMs }) => saidMs <= startedMs && this.#memory.isKept(sinceMs));
    const floor = Math.max(0, ...before.map((one) => one.floor));
    const rounds = [...this.#rounds.values()].filter(
      (round) => round.gateway === gateway && round.askedMs >= startedMs && round.done > 0,
    );
    return rounds.length > 0 && rounds.every((round) => round.done <= floor && round.answers >= this.#quorum);
  }
}
