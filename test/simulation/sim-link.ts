/**
 * The way from one gateway process to one voter, in virtual time: the `Link` port over messages that are delayed,
 * kept back, lost, or cut off with their connection.
 *
 * It behaves like the real link: it reconnects by itself, loads the script before it says that it is up, and gives a
 * reply that came after the deadline to nobody, unless the process slept through the deadline. What had left the process when its connection broke may still reach
 * the voter, even after what was sent later on the next connection.
 */
import type { Facts } from '../../src/redis/facts.ts';
import type { BatchAnswer, Item } from '../../src/redis/items.ts';
import { LinkError, type Link, type Page } from '../../src/redis/link.ts';
import type { Plan } from './plan.ts';
import type { Random } from './random.ts';
import type { Process, Scheduler } from './scheduler.ts';
import type { VoterNode } from './node.ts';

/** What the world wants to know about the traffic. */
export interface Traffic {
  sent(link: SimLink, batch: readonly Item[]): void;
  ran(link: SimLink, batch: readonly Item[], answer: BatchAnswer, connection: object): void;
  /** A reply has come back; `ranAtMs`: when the voter made it. */
  replied(link: SimLink, ranAtMs: number): void;
  /** The answers that were in it. */
  heard(batch: readonly Item[], answer: BatchAnswer): void;
}

interface Pending {
  readonly sentMs: number;
  readonly reject: (error: LinkError) => void;
}

/** One connection: nothing of it reaches the process once it is broken. */
interface Connection {
  broken: boolean;
  readonly life: number;
  /** The last message of each direction arrives then; later ones not before it. */
  requestMs: number;
  replyMs: number;
  readonly pending: Set<Pending>;
}

export class SimLink implements Link {
  readonly node: VoterNode;
  readonly gateway: string;
  readonly #plan: Plan;
  readonly #scheduler: Scheduler;
  readonly #random: Random;
  readonly #process: Process;
  readonly #traffic: Traffic;
  readonly #listeners: ((up: boolean) => void)[] = [];
  /** Only where they make a difference. */
  readonly facts?: () => Promise<readonly Facts[]>;
  #connection: Connection | undefined;
  /** Messages of this direction wait until then. */
  #stalledMs = 0;
  #deafMs = 0;

  constructor(
    node: VoterNode,
    gateway: string,
    plan: Plan,
    scheduler: Scheduler,
    random: Random,
    process: Process,
    traffic: Traffic,
  ) {
    this.node = node;
    this.gateway = gateway;
    this.#plan = plan;
    this.#scheduler = scheduler;
    this.#random = random;
    this.#process = process;
    this.#traffic = traffic;
    if (plan.always) this.facts = async () => [await this.#facts()];
    this.#connectIn(random.between(0, 5));
  }

  async run(batch: readonly Item[]): Promise<BatchAnswer> {
    this.#traffic.sent(this, batch);
    const answer = await this.#ask((connection) => {
      if (!this.node.hasScript) throw new LinkError('noscript');
      const given = this.node.run(batch);
      this.#traffic.ran(this, batch, given, connection);
      return given;
    });
    this.#traffic.heard(batch, answer);
    return answer;
  }

  async scan(): Promise<Page> {
    return await this.#inTime(this.#ask(() => ({ cursor: '0', ids: this.node.ids() })));
  }

  async #facts(): Promise<Facts> {
    return await this.#ask(() => ({
      ...{ server: 'simulated', role: 'master', evictionPolicy: 'noeviction', evictedKeys: 0, appendfsync: 'always' },
      timeMs: this.node.clockMs,
    }));
  }

  async load(): Promise<void> {
    await this.#inTime(this.#ask(() => void (this.node.hasScript = true)));
  }

  onChange(listener: (up: boolean) => void): void {
    this.#listeners.push(listener);
    listener(this.#connection !== undefined);
  }

  async close(): Promise<void> {}

  /** The connection breaks now; the process learns of it. */
  cut(): void {
    const connection = this.#connection;
    if (connection === undefined || connection.broken) return;
    connection.broken = true;
    const noticed = (): void => {
      this.#connection = undefined;
      for (const pending of connection.pending) pending.reject(new LinkError('disconnected'));
      for (const listener of this.#listeners) listener(false);
      this.#connectIn(this.#random.between(20, 80));
    };
    this.#scheduler.at(this.#scheduler.now(), noticed, this.#process);
  }

  /** Requests, or replies, wait until `untilMs`. */
  stall(direction: 'requests' | 'replies', untilMs: number): void {
    if (direction === 'requests') this.#stalledMs = Math.max(this.#stalledMs, untilMs);
    else this.#deafMs = Math.max(this.#deafMs, untilMs);
  }

  /** Asks the voter on the connection that there is now; never settles when a message is lost. */
  async #ask<T>(work: (connection: Connection) => T): Promise<T> {
    const connection = this.#connection;
    if (connection === undefined) throw new LinkError('disconnected');
    return await new Promise((resolve, reject) => {
      const pending: Pending = { sentMs: this.#scheduler.now(), reject };
      connection.pending.add(pending);
      if (this.#isLost()) return;
      this.#request(connection, () => {
        const settle = settled(() => work(connection), resolve, reject);
        this.#reply(connection, pending, settle);
      });
    });
  }

  /** For what the voter's own timer does not watch over. */
  async #inTime<T>(answer: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const tooLate = (): void => reject(new LinkError('timeout'));
    const cancel = this.#scheduler.at(
      this.#scheduler.now() + this.#plan.voterTimeoutMs,
      tooLate,
      this.#process,
      'timer',
    );
    return await Promise.race([answer, promise]).finally(cancel);
  }

  #request(connection: Connection, run: () => void): void {
    const arrivesMs = Math.max(
      this.#scheduler.now() + this.#delay(),
      this.#stalledMs,
      this.#plan.ordered ? connection.requestMs : 0,
    );
    connection.requestMs = arrivesMs;
    this.#scheduler.at(arrivesMs, () => {
      if (connection.life !== this.node.life || (connection.broken && this.#random.chance(0.5))) return;
      this.node.arrive(run);
    });
  }

  #reply(connection: Connection, pending: Pending, settle: () => void): void {
    if (connection.broken || this.#isLost()) return;
    const ranAtMs = this.#scheduler.now();
    const arrivesMs = Math.max(ranAtMs + this.#delay(), this.#deafMs, this.#plan.ordered ? connection.replyMs : 0);
    connection.replyMs = arrivesMs;
    const heard = (): void => {
      if (connection.broken || !connection.pending.delete(pending)) return;
      if (this.#isTooLate(pending)) return pending.reject(new LinkError('timeout'));
      this.#traffic.replied(this, ranAtMs);
      settle();
    };
    this.#scheduler.at(arrivesMs, heard, this.#process);
  }

  #connectIn(ms: number): void {
    const tryIt = (): void => {
      if (!this.node.accepts || this.#scheduler.now() < Math.max(this.#stalledMs, this.#deafMs))
        return this.#connectIn(60);
      this.node.hasScript = true;
      this.#connection = { broken: false, life: this.node.life, requestMs: 0, replyMs: 0, pending: new Set() };
      for (const listener of this.#listeners) listener(true);
    };
    this.#scheduler.at(this.#scheduler.now() + ms, tryIt, this.#process);
  }

  #isLost(): boolean {
    return this.#troubled && this.#random.chance(this.#plan.loss);
  }

  #delay(): number {
    const { delayMs, tail, tailMs } = this.#plan;
    if (this.#calm) return this.#random.between(0.1, 2);
    if (this.#troubled && this.#random.chance(tail)) return this.#random.between(delayMs[1], tailMs);
    return this.#random.between(delayMs[0], delayMs[1]);
  }

  /** A process that was asleep may read what has arrived before it looks at its timers. */
  #isTooLate({ sentMs }: Pending): boolean {
    const nowMs = this.#scheduler.now();
    const justAwake = !this.#process.timersFirst && nowMs - this.#process.lapsedUntilMs < 0.001;
    return !justAwake && nowMs - sentMs > this.#plan.voterTimeoutMs;
  }

  get #troubled(): boolean {
    return !this.#calm && this.#scheduler.now() >= this.#plan.troubleFromMs;
  }

  get #calm(): boolean {
    return this.#scheduler.now() >= this.#plan.calmAtMs;
  }
}

/** Does the work now; what came of it is told later. */
function settled<T>(work: () => T, resolve: (result: T) => void, reject: (error: LinkError) => void): () => void {
  try {
    const result = work();
    return () => resolve(result);
  } catch (error) {
    if (!(error instanceof LinkError)) throw error;
    return () => reject(error);
  }
}
