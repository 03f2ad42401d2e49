/** One gateway process: real voters, claims, watchdog and settlement over simulated links, clock and application. */
import type { Background } from '../../src/core/background.ts';
import type { DeliveryKey, Done, Outcome, Verified } from '../../src/core/delivery.ts';
import { deliver, type Gate } from '../../src/core/handle.ts';
import { InFlight, type Led } from '../../src/core/in-flight.ts';
import type { Claims, Events } from '../../src/core/ports.ts';
import type { Route } from '../../src/core/route.ts';
import { QuorumClaims } from '../../src/redis/claims.ts';
import { VoterOperator } from '../../src/redis/operator.ts';
import type { QuorumLease } from '../../src/redis/quorum-lease.ts';
import { Recovery } from '../../src/redis/recovery.ts';
import { createVoters } from '../../src/redis/voters.ts';
import type { Application } from './application.ts';
import type { Actor, Attempt } from './attempt.ts';
import type { History } from './history.ts';
import type { VoterNode } from './node.ts';
import type { Plan } from './plan.ts';
import { ProcessClock } from './process-clock.ts';
import type { Random } from './random.ts';
import type { Process, Scheduler } from './scheduler.ts';
import { SimLink } from './sim-link.ts';

/** The event of all deliveries, as a key. */
export const EVENT = 'AAAAAAAAAAAAAAAAAAAAAA';
const RETENTION_MS = 3_600_000;
const route = { name: 'route', sender: 'custom', completeOn: [], duplicateReply: 'empty' } as unknown as Route;
const delivery = { method: 'POST', target: '/', headers: [], body: Buffer.alloc(0) } as unknown as Verified;

export class Gateway implements Process, Actor {
  readonly name: string;
  dead = false;
  lapsedUntilMs = 0;
  timersFirst = false;
  lapsedMs = 0;
  refusedMs = -1;
  readonly links: readonly SimLink[];
  /** Works by itself. */
  readonly recovery: Recovery;
  readonly #plan: Plan;
  readonly #scheduler: Scheduler;
  readonly #application: Application;
  readonly #history: History;
  readonly #clock: ProcessClock;
  readonly #claims: QuorumClaims;
  readonly #operator: VoterOperator;
  readonly #events: Events;
  readonly #inFlight: InFlight;
  /** Attempts that are completed in the background; and those that have just begun to be. */
  #pending: Attempt[] = [];
  #begun = 0;
  #endedPending = 0;
  #givenUp = false;
  /** Called when the process dies, for each delivery that is left without an answer. */
  readonly #unanswered = new Set<() => void>();

  constructor(
    name: string,
    plan: Plan,
    nodes: readonly VoterNode[],
    application: Application,
    history: History,
    scheduler: Scheduler,
    random: Random,
  ) {
    this.name = name;
    this.#plan = plan;
    this.#application = application;
    this.#history = history;
    this.#scheduler = scheduler;
    this.#clock = new ProcessClock(scheduler, this, random);
    this.#events = this.#listen();
    this.links = nodes.map((node) => new SimLink(node, name, plan, scheduler, random, this, history));
    const { lockTtlMs, unknownHoldMs, maxHoldMs, voterTimeoutMs: timeoutMs, firstStart, recoverAfterMs } = plan;
    const lifeMs = Math.max(lockTtlMs, unknownHoldMs);
    const links = this.links.map((link) => ({ name: link.node.name, link }));
    const nonce = (): string => random.word();
    const voters = createVoters(links, { timeoutMs, lifeMs, firstStart, nonce }, this.#clock, this.#events);
    this.#claims = new QuorumClaims(voters, { ...plan, retentionMs: RETENTION_MS }, this.#clock, this.#events);
    this.#operator = new VoterOperator(voters, plan);
    this.#inFlight = new InFlight(this.#claims, { lockTtlMs, unknownHoldMs, maxHoldMs }, this.#clock, this.#events);
    const recovery = { lifeMs, recoverAfterMs, onMemoryLoss: 'recover', resyncRate: 20_000, token: name } as const;
    this.recovery = new Recovery(voters, recovery, this.#clock, this.#events);
  }

  /** One delivery of the event, as `handle` does it after it has been verified. Undefined: the process died before it answered. */
  async receive(): Promise<Outcome | undefined> {
    return await new Promise((resolve, reject) => {
      const left = (): void => resolve(undefined);
      this.#unanswered.add(left);
      const arrived = (): void => {
        this.#handle({ id: EVENT } as DeliveryKey)
          .finally(() => this.#unanswered.delete(left))
          .then(resolve, reject);
      };
      this.#scheduler.at(this.#scheduler.now(), arrived, this);
    });
  }

  /** An operator has the event forgotten through this gateway. */
  forget(force: boolean): void {
    if (this.dead) return;
    const command = async (): Promise<void> => {
      const startedMs = this.#scheduler.now();
      const result = await this.#operator.forget({ id: EVENT } as DeliveryKey, RETENTION_MS, force);
      this.#history.forgot(this, result, startedMs, force);
    };
    this.#scheduler.at(this.#scheduler.now(), () => void command(), this);
  }

  /** Sees nothing until `untilMs`. */
  lapse(untilMs: number, timersFirst: boolean): void {
    const nowMs = this.#scheduler.now();
    this.lapsedMs += Math.max(0, untilMs - Math.max(nowMs, this.lapsedUntilMs));
    this.lapsedUntilMs = Math.max(this.lapsedUntilMs, untilMs);
    this.timersFirst = timersFirst;
  }

  die(): void {
    for (const link of this.links) link.cut();
    this.dead = true;
    for (const left of this.#unanswered) left();
  }

  get completing(): boolean {
    return this.#pending.length > 0;
  }

  async #handle(key: DeliveryKey): Promise<Outcome> {
    const { lapsedMs } = this;
    const startedMs = this.#scheduler.now();
    this.#history.trace?.(this.name, 'receives a delivery');
    const outcome = await this.#outcomeFor(key);
    this.#history.toSender(this, outcome, startedMs, lapsedMs);
    return outcome;
  }

  async #outcomeFor(key: DeliveryKey): Promise<Outcome> {
    const waitMs = this.#plan.copyWaitMs;
    if (waitMs > 0)
      return await this.#inFlight.pass(key, { ...route, inFlight: { policy: 'wait', waitMs, maxWaiters: 32 } }, () =>
        this.#lead(key),
      );
    const led = await this.#lead(key);
    return led.kind === 'ended' ? led.outcome : { kind: 'in-progress', retryAfterMs: led.leftMs };
  }

  async #lead(key: DeliveryKey): Promise<Led> {
    const startedMs = this.#scheduler.now();
    const claim = await this.#claims.claim(key, RETENTION_MS);
    this.#history.claimed(this, claim, startedMs);
    switch (claim.kind) {
      case 'won': {
        const attempt = this.#history.won(claim.lease as QuorumLease, this);
        const outcome = await deliver(this.#gateFor(attempt), route, delivery, claim.lease, {});
        const done: Done = { status: 200, wallMs: this.#clock.wall(), traceId: '', reply: undefined };
        return { kind: 'ended', outcome, done: outcome.kind === 'delivered' ? done : undefined };
      }
      case 'done':
        return { kind: 'ended', outcome: { kind: 'duplicate', done: claim.done }, done: claim.done };
      case 'held':
        return claim;
      case 'unavailable':
        return { kind: 'ended', outcome: { kind: 'unavailable' }, done: undefined };
    }
  }

  /** What `deliver` works with: the real thing, listened to. */
  #gateFor(attempt: Attempt): Gate {
    const claims = this.#claims;
    const heard: Claims = {
      claim: (key, retentionMs) => claims.claim(key, retentionMs),
      extend: (lease) => claims.extend(lease),
      release: (lease, sent) => claims.release(lease, sent),
      leave: (lease) => claims.leave(lease),
      peek: (key) => claims.peek(key),
      complete: async (lease, completion) => {
        await claims.complete(lease, completion);
        if (this.#begun > 0) {
          this.#begun -= 1;
          this.#pending.push(attempt);
        } else if (!this.#givenUp) {
          this.#history.concluded(attempt);
        } else if (this.#pending.length === 0) {
          this.#givenUp = false;
          this.#history.gaveUp(attempt);
        }
      },
    };
    const { lockTtlMs, unknownHoldMs, maxHoldMs } = this.#plan;
    const background: Partial<Background> = { run: (work) => void work };
    const gate: Partial<Gate> = {
      claims: heard,
      upstream: this.#application.upstreamFor(attempt, this),
      clock: this.#clock,
      events: this.#events,
      times: { lockTtlMs, unknownHoldMs, maxHoldMs },
      background: background as Background,
    };
    return gate as Gate;
  }

  /** Completions that go on at the same time cannot be told apart: they are taken for done when all have ended. */
  #completionEnded(): void {
    this.#endedPending += 1;
    if (this.#endedPending < this.#pending.length) return;
    for (const attempt of this.#pending) {
      if (this.#givenUp) this.#history.gaveUp(attempt);
      else this.#history.concluded(attempt);
    }
    this.#pending = [];
    this.#endedPending = 0;
    this.#givenUp = false;
  }

  /** What happens in the real parts and is of interest here; of the rest nobody takes notice. */
  #listen(): Events {
    const heard: Partial<Events> = {
      lockExtended: (result) => {
        if (result === 'lost') this.#history.lost(this);
      },
      completionPending: (change) => {
        if (change === 1) this.#begun += 1;
        else this.#completionEnded();
      },
      completionGivenUp: () => (this.#givenUp = true),
      voterState: (voter, state) => this.#history.trace?.(this.name, `${voter} is ${state}`),
      voterError: (voter, error) => {
        if (error === 'skipped' || error === 'down') this.refusedMs = this.#scheduler.now();
        this.#history.trace?.(this.name, `${voter}: ${error}`);
      },
    };
    const ignored = (): void => {};
    return new Proxy(heard, { get: (of, name) => of[name as keyof Events] ?? ignored }) as Events;
  }
}
