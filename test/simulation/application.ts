/**
 * The application behind the gateways, and the way to it: the `Upstream` port in virtual time. It may succeed, fail,
 * answer late or never, refuse the connection or break it; whatever it does, the history is told what really happened.
 */
import type { AppReply } from '../../src/core/delivery.ts';
import type { AppResult, Upstream } from '../../src/core/ports.ts';
import type { Attempt } from './attempt.ts';
import type { History } from './history.ts';
import type { ApplicationPlan, Plan } from './plan.ts';
import type { Random } from './random.ts';
import type { Process, Scheduler } from './scheduler.ts';

type Course = 'success' | 'failed' | 'refused' | 'busy' | 'late' | 'silent' | 'reset' | 'lateFailed';

const answer = (status: number): AppReply => ({ status, headers: [], body: undefined });

export class Application {
  readonly #plan: Plan;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #history: History;

  constructor(plan: Plan, scheduler: Scheduler, random: Random, history: History) {
    this.#plan = plan;
    this.#scheduler = scheduler;
    this.#random = random;
    this.#history = history;
  }

  /** The way to it for one attempt of one gateway process. */
  upstreamFor(attempt: Attempt, process: Process): Upstream {
    return {
      send: async (request, mayStart) => {
        const labelled = Number(request.headers[request.headers.indexOf('Hookonce-Attempt') + 1]);
        return await new Promise((resolve) => this.#send(attempt, labelled, process, mayStart, resolve));
      },
    };
  }

  #send(
    attempt: Attempt,
    labelled: number,
    process: Process,
    mayStart: () => boolean,
    resolve: (result: AppResult) => void,
  ): void {
    const course = this.#course();
    const inMs = (ms: number, run: () => void, owner?: Process): void =>
      void this.#scheduler.at(this.#scheduler.now() + ms, run, owner);
    const neverSent = (why: 'unreachable' | 'in_flight' | 'expired'): void => {
      this.#history.ended(attempt, why);
      resolve({ kind: 'never-sent', why, message: '' });
    };
    if (course === 'refused') return inMs(this.#random.between(0.5, 20), () => neverSent('unreachable'), process);
    if (course === 'busy') return inMs(this.#plan.maxWaitMs, () => neverSent('in_flight'), process);
    const slotMs = Math.min(
      this.#plan.maxWaitMs,
      this.#random.between(0, this.#calm ? 2 : this.#plan.application.slotMs),
    );
    inMs(
      slotMs,
      () => {
        if (!mayStart()) return neverSent('expired');
        this.#history.forwarded(attempt, labelled);
        this.#exchange(attempt, course, process, resolve);
      },
      process,
    );
  }

  #exchange(attempt: Attempt, course: Course, process: Process, resolve: (result: AppResult) => void): void {
    const { upstreamTimeoutMs, lockTtlMs } = this.#plan;
    const beganMs = this.#scheduler.now();
    const late = Promise.withResolvers<AppReply | undefined>();
    let answered = false;
    let isCut = false;
    const cut = (): void => {
      isCut = true;
      late.resolve(undefined);
    };
    const unknown = (how: 'timeout' | 'reset'): void => {
      if (answered) return;
      answered = true;
      this.#history.unknown(attempt, how);
      resolve({ kind: 'unknown', how, late: late.promise, cut });
    };
    this.#scheduler.at(beganMs + upstreamTimeoutMs, () => unknown('timeout'), process, 'timer');

    const tooLate = course === 'late' || course === 'lateFailed';
    const workMs = tooLate ? upstreamTimeoutMs + this.#random.between(0, 2 * lockTtlMs) : this.#workMs();
    const endsMs = beganMs + workMs;
    const status = course === 'failed' || course === 'lateFailed' ? 500 : 200;
    // A silent application may never act, or act and say nothing.
    const acts = course !== 'silent' || this.#random.chance(0.5);
    if (acts) this.#scheduler.at(endsMs, () => this.#history.acted(attempt, status));
    if (course === 'silent') return;
    if (course === 'reset') {
      const brokenMs = beganMs + this.#random.between(0, workMs * 1.2);
      const broken = (): void => {
        unknown('reset');
        late.resolve(undefined);
      };
      this.#scheduler.at(brokenMs, broken, process);
      return;
    }
    const heard = (): void => {
      if (isCut) return;
      this.#history.answered(attempt, status);
      late.resolve(answer(status));
      if (answered) return;
      answered = true;
      resolve({ kind: 'answered', reply: answer(status), upstreamMs: this.#scheduler.now() - beganMs });
    };
    this.#scheduler.at(endsMs + this.#random.between(0.1, 2), heard, process);
  }

  #course(): Course {
    if (this.#calm) return 'success';
    const { application } = this.#plan;
    let left = this.#random.next();
    for (const course of [
      'failed',
      'refused',
      'busy',
      'late',
      'silent',
      'reset',
      'lateFailed',
    ] as const satisfies (keyof ApplicationPlan)[]) {
      left -= application[course];
      if (left < 0) return course;
    }
    return 'success';
  }

  #workMs(): number {
    const { workMs, longWork, longWorkMs } = this.#plan.application;
    if (this.#calm) return this.#random.between(1, 10);
    if (this.#random.chance(longWork)) return this.#random.between(workMs[1], longWorkMs);
    return this.#random.between(workMs[0], workMs[1]);
  }

  get #calm(): boolean {
    return this.#scheduler.now() >= this.#plan.calmAtMs;
  }
}
