/**
 * One voter as the quorum sees it. Every question is answered within the deadline, whatever the server does.
 *
 *     connecting ──link up, hello answered──▶ eligible ──3 silences in a row──▶ skipped ──a probe answers──▶ eligible
 *         ▲                                      │                                 │
 *         └──────────────────────────link down───┴─────────────────────────────────┘
 *
 * - Items of one turn of the event loop go as one batch per lane, at most 200 items or 256 KiB, in order.
 * - Only an eligible voter is asked; the others answer `error` at once, so that a silent node costs one
 *   deadline and not one per delivery. A probe (`hello`) every 2 s finds out when it is back.
 * - NOSCRIPT proves that nothing ran: the script is loaded and what is still wanted is sent again, once,
 *   before anything issued later.
 * - An answer counts only while the last boot seen from this voter is the one that gave it (`counts`).
 */
import type { Clock, Events, VoterState } from '../core/ports.ts';
import { batches, type Pending, type Reply } from './batch.ts';
import { errorClass } from './errors.ts';
import type { BatchAnswer, Hold, Item } from './items.ts';
import { LinkError, type Link } from './link.ts';
import { tagOf } from './codec.ts';

const PROBE_MS = 2000;
const SILENCES = 3;

export interface VoterOptions {
  readonly name: string;
  readonly timeoutMs: number;
  /** The longest life a lock can be given: max(lockTtl, unknownHold). */
  readonly lifeMs: number;
  /** One lane for a standalone server, sixteen (by tag) for a Redis Cluster. */
  readonly lanes: 'one' | 'sixteen';
  readonly nonce: () => string;
  /** Called when the voter has answered `hello`; `hold` is known then. */
  readonly greeted?: () => void;
}

export class Voter implements AsyncDisposable {
  readonly name: string;
  readonly #link: Link;
  readonly #options: VoterOptions;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #queues = new Map<string, Pending[]>();
  readonly #boots = new Map<string, string>();
  readonly #closing = new AbortController();
  #hold: Hold = '';
  #up = false;
  #greeted = false;
  #silences = 0;
  #flushing = false;
  /** While set, the script is being loaded and nothing else is sent. */
  #reload: Promise<void> | undefined;
  #state: VoterState | undefined;

  constructor(link: Link, options: VoterOptions, clock: Clock, events: Events) {
    this.name = options.name;
    this.#link = link;
    this.#options = options;
    this.#clock = clock;
    this.#events = events;
    link.onChange((up) => this.#linkChanged(up));
    void this.#probe();
  }

  /** Why its oks do not count, empty when they do. */
  get hold(): Hold {
    return this.#hold;
  }

  get eligible(): boolean {
    return this.#up && this.#greeted && this.#silences < SILENCES;
  }

  /** Whether an answer may be counted now: the voter has not started anew since it gave it. */
  counts(reply: Reply, id: string): boolean {
    return reply.boot !== '' && reply.boot === this.#boots.get(this.#lane(id));
  }

  /** Asks; settles within the deadline, an `error` answer where there is none. Never rejects. */
  async ask(item: Exclude<Item, { op: 'hello' | 'trust' }>): Promise<Reply> {
    if (!this.eligible) {
      const why = this.#up && this.#greeted ? 'skipped' : 'down';
      this.#events.voterError(this.name, why);
      return { status: 'error', message: why, boot: '' };
    }
    return await this.#enqueue(item, this.#lane(item.id));
  }

  /** Lifts the hold of a voter that was empty when first met; without effect on any other. */
  async trust(): Promise<void> {
    await Promise.all([...this.#boots].map(([lane, boot]) => this.#enqueue({ op: 'trust', boot }, lane)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    await this.#link.close();
  }

  #lane(id: string): string {
    return this.#options.lanes === 'one' ? '0' : tagOf(id);
  }

  #enqueue(item: Item, lane: string): Promise<Reply> {
    return new Promise((resolve) => {
      const pending: Pending = { item, dueMs: this.#clock.now() + this.#options.timeoutMs, reloaded: false, resolve };
      const queue = this.#queues.get(lane);
      if (queue) queue.push(pending);
      else this.#queues.set(lane, [pending]);
      this.#flushSoon();
    });
  }

  #flushSoon(): void {
    if (this.#flushing || this.#reload) return;
    this.#flushing = true;
    this.#clock.soon(() => {
      this.#flushing = false;
      if (this.#reload) return;
      for (const [lane, queue] of this.#queues) {
        this.#queues.delete(lane);
        for (const batch of batches(queue)) void this.#send(batch, lane);
      }
    });
  }

  async #send(batch: readonly Pending[], lane: string): Promise<void> {
    const wanted = batch.filter((pending) => pending.resolve !== undefined);
    if (wanted.length === 0) return;
    const sentMs = this.#clock.now();
    const cancel = this.#clock.timer(Math.max(0, wanted[0]!.dueMs - sentMs), () => {
      this.#silent(wanted);
      this.#settle(wanted, () => ({ status: 'error', message: 'timeout', boot: '' }));
    });
    try {
      const reply = await this.#link.run(
        wanted.map((pending) => pending.item),
        lane,
      );
      this.#silences = 0;
      this.#events.voterCommand(this.name, this.#clock.now() - sentMs);
      this.#learn(reply, lane);
      this.#settle(wanted, (index) => ({ ...reply.answers[index]!, boot: reply.boot }));
    } catch (error) {
      const why = error instanceof LinkError ? error.errorClass : 'other';
      if (why === 'noscript' && this.#again(wanted, lane)) return;
      if (why === 'timeout') this.#silent(wanted);
      else this.#events.voterError(this.name, why);
      this.#settle(wanted, () => ({ status: 'error', message: why, boot: '' }));
      if (!(error instanceof LinkError)) throw error;
    } finally {
      cancel();
    }
  }

  #settle(batch: readonly Pending[], reply: (index: number) => Reply): void {
    batch.forEach((pending, index) => {
      const { resolve } = pending;
      if (!resolve) return;
      pending.resolve = undefined;
      const answer = reply(index);
      if (answer.status === 'error' && answer.boot !== '') this.#events.voterError(this.name, errorClass(answer.message));
      resolve(answer);
    });
  }

  /** After NOSCRIPT: puts what is still wanted back at the head of its lane. False when it was tried before. */
  #again(batch: readonly Pending[], lane: string): boolean {
    if (batch.some((pending) => pending.reloaded)) return false;
    this.#events.voterError(this.name, 'noscript');
    for (const pending of batch) {
      pending.reloaded = true;
      const left = pending.dueMs - this.#clock.now();
      this.#clock.timer(Math.max(0, left), () => this.#settle([pending], () => ({ status: 'error', message: 'timeout', boot: '' })));
    }
    const behind = this.#queues.get(lane) ?? [];
    const earlier = behind.filter((pending) => pending.reloaded);
    const later = behind.filter((pending) => !pending.reloaded);
    this.#queues.set(lane, [...earlier, ...batch, ...later]);
    this.#reload ??= this.#load();
    return true;
  }

  async #load(): Promise<void> {
    await this.#link.load().catch(() => this.#events.voterError(this.name, 'noscript'));
    this.#reload = undefined;
    this.#flushSoon();
  }

  #linkChanged(up: boolean): void {
    this.#up = up;
    this.#greeted = false;
    if (up) {
      this.#silences = 0;
      void this.#greet();
    } else {
      this.#report();
    }
  }

  /** `hello` goes past eligibility: it is what makes a voter eligible. */
  async #greet(): Promise<void> {
    const { lifeMs, name, nonce } = this.#options;
    const lanes = this.#options.lanes === 'one' ? ['0'] : '0123456789abcdef'.split('');
    const replies = await Promise.all(lanes.map((lane) => this.#enqueue({ op: 'hello', nonce: nonce(), lifeMs, name }, lane)));
    if (replies.every((reply) => reply.status === 'hello')) {
      this.#greeted = this.#up;
      this.#hold = replies.map((reply) => (reply.status === 'hello' ? reply.hold : '')).find((hold) => hold !== '') ?? '';
    }
    this.#report();
    this.#options.greeted?.();
  }

  async #probe(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#clock.sleep(PROBE_MS, signal);
      if (this.#up && !signal.aborted) await this.#greet();
    }
  }

  #learn(reply: BatchAnswer, lane: string): void {
    this.#boots.set(lane, reply.boot);
    if (reply.boot === '') this.#greeted = false;
    if (!reply.held) this.#hold = '';
    if (reply.answers.some((answer) => answer.status === 'no-marker')) void this.#greet();
    this.#report();
  }

  /** One silence, unless the deadline has counted it already. */
  #silent(batch: readonly Pending[]): void {
    if (!batch.some((pending) => pending.resolve)) return;
    this.#silences += 1;
    this.#events.voterError(this.name, 'timeout');
    this.#report();
  }

  #report(): void {
    const state: VoterState = !this.eligible ? 'down' : this.#hold !== '' ? 'held' : 'up';
    if (state === this.#state) return;
    this.#state = state;
    this.#events.voterState(this.name, state);
  }
}
