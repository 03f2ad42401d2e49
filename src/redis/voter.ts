/**
 * One voter as the quorum sees it. Every question is answered within the deadline, whatever the server does;
 * the deadline runs from the turn that sends it, so that a busy process does not take its voters for silent.
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
import type { Cancel, Clock, Events, VoterState, VoterStatus } from '../core/ports.ts';
import { batches, type Pending, type Reply } from './batch.ts';
import { errorClass } from './errors.ts';
import type { Facts } from './facts.ts';
import type { BatchAnswer, Hold, Item } from './items.ts';
import { LinkError, type Link, type Page } from './link.ts';
import { tagOf } from './codec.ts';
import { TAGS } from './slots.ts';

const PROBE_MS = 2000;
/** A server that reads its file back is asked this often. */
const LOADING_MS = 200;
const SILENCES = 3;
/** Longer than it takes to notice that a gateway has gone, by several probes. */
const PRESENT_MS = 5 * PROBE_MS;
const HELD: Record<Exclude<Hold, ''>, string> = {
  locks: 'it was restarted and may have forgotten locks',
  records: 'it may have forgotten events and learns them from the others',
  empty: 'it is empty and learns from the others',
};

export interface VoterOptions {
  readonly name: string;
  readonly timeoutMs: number;
  /** The longest life a lock can be given: max(lockTtl, unknownHold). */
  readonly lifeMs: number;
  /** One lane for a standalone server, sixteen (by tag) for a Redis Cluster. */
  readonly lanes: 'one' | 'sixteen';
  readonly nonce: () => string;
  /** What it is told of the voters that we know (`membership.ts`); undefined: nothing, we only look. */
  readonly presence?: { readonly service: string; readonly own: string } | undefined;
  /** Called when the voter was greeted and before its answers count; `hold` is known when it has answered. */
  readonly greeted?: (voter: Voter) => void;
}

export class Voter implements AsyncDisposable {
  readonly name: string;
  readonly #link: Link;
  readonly #options: VoterOptions;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #queues = new Map<string, Pending[]>();
  /** By token, the claims that have no answer yet. */
  readonly #claims = new Map<string, Pending>();
  readonly #boots = new Map<string, string>();
  /** By lane, the last boot that was not empty. */
  readonly #met = new Map<string, string>();
  readonly #closing = new AbortController();
  #hold: Hold = '';
  /** The lanes that are on hold; all of them count only together. */
  #heldLanes: ReadonlySet<string> = new Set();
  /** When the hold ends by itself. */
  #holdUntilMs: number | undefined;
  #unfit: string | undefined;
  #wasWhole = false;
  /** The last reason why there was no answer. */
  #trouble = 'not greeted yet';
  /** For the next `hello`. */
  appendfsync: 'always' | 'other' | undefined;
  #lostWallMs = 0;
  /** Which voters gateways know that were here; empty: none were; undefined: not known. */
  #others: string | undefined;
  #up = false;
  #greeted = false;
  /** By lane, silences in a row. */
  readonly #silences = new Map<string, number>();
  /** Lanes that are skipped. */
  #mute = 0;
  /** Nothing has been heard from it since a silence, or since the connection broke. */
  #quiet = false;
  #flushing = false;
  /** While set, the script is being loaded and nothing else is sent. */
  #reload: Promise<void> | undefined;
  #state: VoterState | undefined;
  #stateWhy: string | undefined;
  #stateSinceMs: number;
  #greeting: Promise<boolean> | undefined;
  readonly #rebooted: ((concerns: (id: string) => boolean) => void)[] = [];
  readonly #quieted: ((quiet: boolean) => void)[] = [];

  constructor(link: Link, options: VoterOptions, clock: Clock, events: Events) {
    this.name = options.name;
    this.#link = link;
    this.#options = options;
    this.#clock = clock;
    this.#events = events;
    this.#stateSinceMs = clock.now();
    link.onChange(
      (up) => this.#linkChanged(up),
      (why) => this.#tell(why),
    );
    void this.#probe();
  }

  /** Why its oks do not count, empty when they do. */
  get hold(): Hold {
    return this.#hold;
  }

  /** Why it is not what the quorum takes it for; undefined when it is. Its oks do not count either. */
  get unfit(): string | undefined {
    return this.#unfit;
  }

  refuse(why: string | undefined): void {
    this.#unfit = why;
    this.#report();
  }

  /** Whether it was ever met with its records: empty after that, it has forgotten them. */
  get wasWhole(): boolean {
    return this.#wasWhole;
  }

  /** Whether its oks count. */
  get counted(): boolean {
    return this.eligible && this.#hold === '' && this.#unfit === undefined;
  }

  /** How it stands, for people. */
  get status(): VoterStatus {
    const node = this.name;
    if (!this.eligible) return { node, state: 'down', why: this.#trouble };
    const why = this.#unfit ?? (this.#hold === '' ? undefined : HELD[this.#hold]);
    if (why === undefined) return { node, state: 'up' };
    const until = this.#hold === 'locks' ? this.#holdUntilMs : undefined;
    return {
      node,
      state: 'held',
      why,
      ...(until !== undefined && { leftMs: Math.max(0, Math.ceil(until - this.#clock.now())) }),
    };
  }

  /** The class of its last error, or what else kept it from being asked. */
  get trouble(): string {
    return this.#trouble;
  }

  /** What its servers say of themselves; undefined when they do not answer in time, or there are none. */
  async facts(): Promise<readonly Facts[] | undefined> {
    const asked = this.#link.facts?.();
    return asked && (await this.#inTime(asked).catch(() => undefined));
  }

  /** Its clock stepped forward since it had `boot`: it does not count before the locks that ended too soon would have ended. */
  async stepped(boot: string): Promise<void> {
    if (boot !== this.boot) return;
    await Promise.all(
      [...this.#boots].map(([lane, known]) =>
        this.#enqueue({ op: 'stepped', boot: known, nonce: this.#options.nonce() }, lane),
      ),
    );
    await this.greet();
  }

  /** The boots last seen from it, one per lane. */
  get boot(): string {
    return [...this.#boots.values()].join(' ');
  }

  /** Whether this and `other` are one memory. */
  isTwinOf(other: Voter): boolean {
    const boots = new Set(this.#boots.values());
    return [...other.#boots.values()].some((boot) => boot !== '' && boots.has(boot));
  }

  get eligible(): boolean {
    return this.#up && this.#greeted && this.#mute === 0;
  }

  /** Whether an answer may be counted now: the voter has not started anew since it gave it. */
  counts(reply: Reply, id: string): boolean {
    return (
      this.#unfit === undefined &&
      this.#hold === '' &&
      reply.boot !== '' &&
      reply.boot === this.#boots.get(this.#lane(id))
    );
  }

  /** Whether an ok that does not count came from a voter that has records to learn, and still has. */
  isLearning(reply: Reply, id: string): boolean {
    return this.learns && reply.boot !== '' && reply.boot === this.#boots.get(this.#lane(id));
  }

  /** It lost its records, or may have, or never had any. */
  get learns(): boolean {
    return this.#hold === 'records' || this.#hold === 'empty';
  }

  /** Asks; settles within the deadline, an `error` answer where there is none. Never rejects. */
  ask(item: Extract<Item, { id: string }>): Promise<Reply> {
    if (!this.eligible) {
      const why = this.#up && this.#greeted ? 'skipped' : 'down';
      this.#events.voterError(this.name, why);
      return Promise.resolve({ status: 'error', message: why, boot: '' });
    }
    if (item.op === 'release') this.#withdraw(item.token);
    return this.#enqueue(item, this.#lane(item.id));
  }

  /** The voters that the last gateway knew that was here with one list of them; empty: there was none; undefined: not known. */
  get others(): string | undefined {
    return this.eligible ? this.#others : undefined;
  }

  /** Has it learn its records anew, if it has not started anew since it had `boot`. */
  async relearn(boot: string): Promise<void> {
    if (boot !== this.boot) return;
    const { nonce } = this.#options;
    await Promise.all(
      [...this.#boots].map(([lane, known]) => this.#enqueue({ op: 'relearn', boot: known, nonce: nonce() }, lane)),
    );
    await this.greet();
  }

  /** Events before this instant may be forgotten (epoch milliseconds); 0: none are. */
  get lostWallMs(): number {
    return this.#lostWallMs;
  }

  /** One page of the events that have a record here, from one lane after the other; `'0'` begins and ends it. Rejects with `LinkError`. */
  async scan(cursor: string): Promise<Page> {
    return await this.#inTime(this.#link.scan(cursor, '0'));
  }

  /** Asks for the right to copy records to this voter, for `lockMs`; `token` is whoever asks. */
  async startSync(token: string, lockMs: number): Promise<boolean> {
    return (await this.#enqueue({ op: 'sync', token, lockMs }, '0')).status === 'ok';
  }

  /** Lets the voter count again, if it has not started anew since it had `boot`. */
  async admit(boot: string, lostWallMs: number): Promise<void> {
    if (boot !== this.boot) return;
    await Promise.all(
      [...this.#boots].map(([lane, known]) => this.#enqueue({ op: 'admit', boot: known, lostWallMs }, lane)),
    );
    await this.greet();
  }

  /** `listener` is called when the voter has started anew and is known under another boot; `concerns`: whether an event is kept there. */
  onReboot(listener: (concerns: (id: string) => boolean) => void): void {
    this.#rebooted.push(listener);
  }

  /** `listener` is called when the voter falls silent or away, and when it has answered after that (and after `onReboot`). */
  onQuiet(listener: (quiet: boolean) => void): void {
    this.#quieted.push(listener);
  }

  /** Lifts the hold of a voter that was empty when first met; without effect on any other. */
  async trust(): Promise<void> {
    await Promise.all([...this.#boots].map(([lane, boot]) => this.#enqueue({ op: 'trust', boot }, lane)));
    await this.greet();
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
      const pending: Pending = { item, dueMs: undefined, reloaded: false, withdrawn: false, resolve };
      const queue = this.#queues.get(lane);
      if (queue) queue.push(pending);
      else this.#queues.set(lane, [pending]);
      if (item.op === 'claim') this.#claims.set(item.token, pending);
      this.#flushSoon();
    });
  }

  /** After NOSCRIPT a claim that was given up is not sent again: its release may have run meanwhile, on a script that another gateway loaded. */
  #withdraw(token: string): void {
    const claim = this.#claims.get(token);
    if (claim) claim.withdrawn = true;
  }

  #flushSoon(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    this.#clock.soon(() => {
      this.#flushing = false;
      const dueMs = this.#clock.now() + this.#options.timeoutMs;
      for (const queue of this.#queues.values()) for (const pending of queue) pending.dueMs ??= dueMs;
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
    let late = false;
    const cancel = this.#atDeadline(wanted[0]!, () => {
      late = true;
      this.#silent(wanted, lane);
      this.#settle(wanted, () => ({ status: 'error', message: 'timeout', boot: '' }));
    });
    try {
      const reply = await this.#link.run(
        wanted.map((pending) => pending.item),
        lane,
      );
      // A voter that answers too late, every time, costs as much as a silent one.
      if (late) return;
      this.#heard(lane);
      this.#events.voterCommand(this.name, this.#clock.now() - sentMs);
      this.#learn(reply, lane);
      this.#settle(wanted, (index) => ({ ...reply.answers[index]!, boot: reply.boot }));
    } catch (error) {
      const why = error instanceof LinkError ? error.errorClass : 'other';
      if (why === 'noscript' && this.#again(wanted, lane)) return;
      if (why === 'timeout') this.#silent(wanted, lane);
      else this.#tell(why);
      this.#settle(wanted, () => ({ status: 'error', message: why, boot: '' }));
      if (!(error instanceof LinkError)) throw error;
    } finally {
      cancel();
    }
  }

  /** A busy turn of the event loop is no silence of the voter: what has arrived by the deadline is read first. */
  #atDeadline({ dueMs }: Pick<Pending, 'dueMs'>, fn: () => void): Cancel {
    return this.#clock.timer(Math.max(0, dueMs! - this.#clock.now()), () => this.#clock.soon(fn));
  }

  #settle(batch: readonly Pending[], reply: (index: number) => Reply): void {
    batch.forEach((pending, index) => {
      const { resolve } = pending;
      if (!resolve) return;
      pending.resolve = undefined;
      if (pending.item.op === 'claim') this.#claims.delete(pending.item.token);
      const answer = reply(index);
      if (answer.status === 'error' && answer.boot !== '') this.#tell(errorClass(answer.message));
      resolve(answer);
    });
  }

  /** After NOSCRIPT: puts what is still wanted back at the head of its lane. False when it was tried before. */
  #again(batch: readonly Pending[], lane: string): boolean {
    if (batch.some((pending) => pending.reloaded)) return false;
    // Told once for all batches that were under way.
    if (!this.#reload) this.#tell('noscript');
    const givenUp = batch.filter((pending) => pending.withdrawn);
    const wanted = batch.filter((pending) => !pending.withdrawn);
    this.#settle(givenUp, () => ({ status: 'error', message: 'noscript', boot: '' }));
    for (const pending of wanted) {
      pending.reloaded = true;
      this.#atDeadline(pending, () =>
        this.#settle([pending], () => ({ status: 'error', message: 'timeout', boot: '' })),
      );
    }
    const behind = this.#queues.get(lane) ?? [];
    const earlier = behind.filter((pending) => pending.reloaded);
    const later = behind.filter((pending) => !pending.reloaded);
    this.#queues.set(lane, [...earlier, ...wanted, ...later]);
    this.#reload ??= this.#load();
    return true;
  }

  async #load(): Promise<void> {
    await this.#inTime(this.#link.load()).catch((error: unknown) => {
      if (!(error instanceof LinkError && error.errorClass === 'timeout')) this.#tell('noscript');
    });
    this.#reload = undefined;
    this.#flushSoon();
  }

  /** For what is no batch: rejects at the deadline. */
  async #inTime<T>(work: Promise<T>): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = this.#atDeadline({ dueMs: this.#clock.now() + this.#options.timeoutMs }, () =>
      reject(new LinkError('timeout')),
    );
    return await Promise.race([work, late]).finally(cancel);
  }

  #tell(why: string): void {
    this.#trouble = why;
    this.#events.voterError(this.name, why);
  }

  #linkChanged(up: boolean): void {
    this.#up = up;
    this.#greeted = false;
    if (up) {
      this.#silences.clear();
      this.#mute = 0;
      void this.greet();
    } else {
      this.#setQuiet(true);
      this.#report();
    }
  }

  #setQuiet(quiet: boolean): void {
    if (quiet === this.#quiet) return;
    this.#quiet = quiet;
    for (const listener of this.#quieted) listener(quiet);
  }

  /** Says `hello`, which goes past eligibility: it is what makes a voter eligible. True when it was answered. */
  async greet(): Promise<boolean> {
    this.#greeting ??= this.#greet().finally(() => (this.#greeting = undefined));
    return await this.#greeting;
  }

  async #greet(): Promise<boolean> {
    const { lifeMs, name, nonce, presence } = this.#options;
    const { appendfsync } = this;
    const lanes = this.#options.lanes === 'one' ? ['0'] : TAGS;
    const asked = lanes.map((lane) => this.#enqueue({ op: 'hello', nonce: nonce(), lifeMs, name, appendfsync }, lane));
    const present = presence && this.#enqueue({ op: 'present', ...presence, ms: PRESENT_MS }, lanes[0]!);
    // In one batch with the greeting, so that it is there when that is.
    void present?.then((reply) => (this.#others = reply.status === 'present' ? reply.own : undefined));
    const replies = await Promise.all(asked);
    const answered = replies.every((reply) => reply.status === 'hello');
    if (answered) {
      this.#greeted = this.#up;
      this.#lostWallMs = Math.max(0, ...replies.map((reply) => (reply.status === 'hello' ? reply.lostWallMs : 0)));
      const held = replies.flatMap((reply) => (reply.status === 'hello' && reply.hold !== '' ? [reply] : []));
      this.#heldLanes = new Set(lanes.filter((_, at) => held.some((reply) => reply === replies[at])));
      this.#hold = holdOfAll(replies.map((reply) => (reply.status === 'hello' ? reply.hold : '')));
      this.#holdUntilMs = this.#clock.now() + Math.max(0, ...held.map(({ leftMs }) => leftMs));
    }
    this.#options.greeted?.(this);
    this.#report();
    if (!answered && this.#up && this.#trouble === 'loading') void this.#greetSoon();
    return answered;
  }

  async #greetSoon(): Promise<void> {
    const { signal } = this.#closing;
    await this.#clock.sleep(LOADING_MS, signal);
    if (this.#up && !signal.aborted) await this.greet();
  }

  async #probe(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await this.#clock.sleep(PROBE_MS, signal);
      if (this.#up && !signal.aborted) await this.greet();
    }
  }

  #learn(reply: BatchAnswer, lane: string): void {
    const before = this.#met.get(lane);
    this.#boots.set(lane, reply.boot);
    if (reply.boot !== '') this.#met.set(lane, reply.boot);
    if (reply.boot === '') {
      this.#greeted = false;
      this.#trouble = 'it has forgotten everything';
    }
    // What else there is to know at the end of a hold (since when memory is whole), only the greeting tells.
    if (reply.boot === '' || reply.held !== this.#heldLanes.has(lane)) void this.greet();
    if (before && reply.boot !== '' && before !== reply.boot)
      for (const listener of this.#rebooted) listener((id) => this.#lane(id) === lane);
    this.#setQuiet(false);
    this.#report();
  }

  /** One silence, unless the deadline has counted it already. */
  #silent(batch: readonly Pending[], lane: string): void {
    if (!batch.some((pending) => pending.resolve)) return;
    const silences = (this.#silences.get(lane) ?? 0) + 1;
    this.#silences.set(lane, silences);
    if (silences === SILENCES) this.#mute += 1;
    this.#setQuiet(true);
    this.#tell('timeout');
    this.#report();
  }

  #heard(lane: string): void {
    const silences = this.#silences.get(lane);
    if (silences === undefined) return;
    this.#silences.delete(lane);
    if (silences >= SILENCES) this.#mute -= 1;
  }

  #report(): void {
    this.#wasWhole ||= this.eligible && (this.#hold === '' || this.#hold === 'locks');
    const { state, why, leftMs } = this.status;
    if (state === this.#state && (state !== 'held' || why === this.#stateWhy)) return;
    const lastedMs = this.#clock.now() - this.#stateSinceMs;
    [this.#state, this.#stateWhy, this.#stateSinceMs] = [state, why, this.#clock.now()];
    this.#events.voterState(this.name, state, { why, leftMs, lastedMs });
  }
}

/** Of a voter with several lanes: it is empty only as a whole, and has lost its records where any lane has. */
function holdOfAll(holds: readonly Hold[]): Hold {
  if (holds.every((hold) => hold === holds[0])) return holds[0]!;
  if (holds.some((hold) => hold === 'records' || hold === 'empty')) return 'records';
  return 'locks';
}
