/**
 * The only interfaces: what the core needs of the world. Each has two implementations that pass one
 * contract suite (`test/contract`), so that neither can lie about the other.
 */
import type { AppReply, DeliveryKey, Done, OutcomeKind, RawHeaders, RejectReason } from './delivery.ts';
import type { Undivided } from './elements.ts';
import type { Share } from './memory.ts';
import type { Enqueued, Fate, QueueDepth } from './queue.ts';

/** Time and chance. Nothing outside `clock.ts` reads a clock, sets a timer or draws a number. */
export interface Clock {
  /** Monotonic milliseconds, fractional. */
  now(): number;
  /** Wall time, epoch milliseconds. */
  wall(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs `fn` once after `ms`, unless cancelled. Does not keep the process alive. */
  timer(ms: number, fn: () => void): Cancel;
  /** Runs `fn` once this turn of the event loop has read all that has arrived. */
  soon(fn: () => void): void;
}
export type Cancel = () => void;

/** A claim that was won: the right to forward, while it is valid. Handed back to the `Claims` that made it. */
export interface Lease {
  readonly key: DeliveryKey;
  /** 1 for the first attempt of an event in its retention; higher: an earlier one may have run. */
  readonly attempt: number;
  /**
   * A majority of the voters lost its memory: events that were handled before this instant (epoch milliseconds)
   * may be forgotten. The application is told for as long as it may matter.
   */
  readonly memorySinceMs: number | undefined;
  /** Of a delivery that was claimed element by element: what of it this lease is for. */
  readonly portion?: Portion | undefined;
  /** Older than what the application has taken of the same resource, or perhaps; undefined: it is not, as far as is known. */
  readonly stale?: 'true' | 'maybe' | undefined;
  /** Milliseconds for which a quorum is known to be held; negative once over. Moves on with `extend`. */
  validForMs(): number;
  /** True while there is still time to begin work (a third of the lock's life). */
  mayStart(): boolean;
}

/** The elements that are forwarded under a lease; the others were handled before. */
export interface Portion {
  readonly kept: number;
  /** How many the delivery has. */
  readonly of: number;
  /** What is left of the body, without a content coding; undefined where nothing was taken out of it. */
  readonly body: Buffer | undefined;
}

export type ClaimResult =
  | { readonly kind: 'won'; readonly lease: Lease }
  /** `replay`: the content was handled, under another id. */
  | { readonly kind: 'done'; readonly done: Done; readonly replay?: true | undefined }
  /**
   * `unknown`: its holder has sent bytes and got no answer; it will not end before `leftMs`. `split`: nobody may be
   * holding it. `of`: what is held, where that is not the event itself.
   */
  | {
      readonly kind: 'held';
      readonly leftMs: number;
      readonly unknown: boolean;
      readonly split: boolean;
      readonly of?: DeliveryKey | undefined;
    }
  /** `partial`: where a claim without a quorum was asked for (`alone`), what the voters that answer have granted. */
  | { readonly kind: 'unavailable'; readonly partial?: Lease | undefined };

/** What a completion leaves behind, as in `Done`. */
export type Completion = Omit<Done, 'wallMs'>;

/** Where an event stands, reading only. */
export type Standing =
  | { readonly kind: 'done'; readonly done: Done }
  | { readonly kind: 'held'; readonly leftMs: number; readonly unknown: boolean }
  | { readonly kind: 'free' }
  | { readonly kind: 'unavailable' };

/** Claims on a quorum of voters (docs/protocol.md, sections 2 to 4). No method rejects for a voter's sake. */
export interface Claims {
  /** Tries to become the one who forwards, within the claim budget. `retentionMs`: how long a done record lives. */
  claim(key: DeliveryKey, retentionMs: number): Promise<ClaimResult>;
  /** One beat of the watchdog: true when a quorum is still held; heals voters that lost the lock. */
  extend(lease: Lease): Promise<boolean>;
  /** Writes the done record; resolves after the first try and carries on in the background until a quorum has it. */
  complete(lease: Lease, completion: Completion): Promise<void>;
  /** Gives the claim up, while it is still ours. `sent`: whether any byte went to the application. Repeated in the background. */
  release(lease: Lease, sent: boolean): Promise<void>;
  /** The outcome is unknown: leaves the lock to run out after `unknownHold`. The lease can still be completed or released. */
  leave(lease: Lease): Promise<void>;
  peek(key: DeliveryKey): Promise<Standing>;
  /** Where something goes along with every claim, such as a span: it goes around what is made of several claims instead. */
  around?(make: (claims: Claims) => Claims): Claims;
}

/** Claims whose votes can be told what another store knows of the event. */
export interface Votes extends Claims, VersionStore {
  /** `alone`: without a quorum, what the voters that answer have granted is kept and handed out (`partial`). */
  claim(key: DeliveryKey, retentionMs: number, alone?: boolean): Promise<ClaimResult>;
  /**
   * Raises the attempt of a lease that was won, and the voters' records, to what the ledger counted. `done`: the event
   * turned out to be done; `lost`: no quorum holds the lease any more.
   */
  raise(lease: Lease, attempt: number): Promise<Extract<ClaimResult, { kind: 'done' }> | 'raised' | 'lost'>;
  /** The event was done before, which the voters do not know: tells them for `leftMs`, and lets go of the lease. */
  teach(lease: Lease, done: Done, attempt: number, leftMs: number): void;
  /** An operator has had attempts up to `floor` forgotten, where these voters were not asked. `leftMs`: of the record. */
  forgotten(key: DeliveryKey, floor: number, leftMs: number): Promise<void>;
}

/** Where versions of resources are kept. */
export interface VersionStore {
  /** Changes the versions of a resource; resolves with what they were. */
  order(change: VersionChange): Promise<Versions | 'unavailable'>;
}

/** A lease on a row of the ledger. All `…Ms` are lives, counted by the database's clock. */
export interface RowLease {
  /** Of the event's key. */
  readonly id: string;
  /** Whose it is. */
  readonly token: string;
  /** At least. */
  readonly attempt: number;
  readonly leaseMs: number;
  /** How long the row is kept if nothing more is heard of it. */
  readonly keepMs: number;
}

export type RowTaken =
  | { readonly kind: 'ours'; readonly attempt: number }
  | { readonly kind: 'done'; readonly done: Done; readonly attempt: number; readonly leftMs: number }
  | { readonly kind: 'held'; readonly leftMs: number; readonly unknown: boolean }
  /** `asked`: it may have been written all the same. */
  | { readonly kind: 'unavailable'; readonly asked: boolean };

/** What the ledger knows of an event. */
export interface LedgerRow {
  readonly attempt: number;
  /** Attempts up to this one were forgotten by an operator; 0: none. */
  readonly floor: number;
  readonly lease: { readonly token: string; readonly unknown: boolean; readonly leftMs: number } | undefined;
  readonly done: Done | undefined;
  readonly leftMs: number;
}

/** Versions of one resource: sortable texts (`core/version.ts`), empty where there is none. */
export interface Versions {
  /** The newest that the application has taken. */
  readonly applied: string;
  /** The newest whose outcome is not known, or not yet. */
  readonly pending: string;
}

/** `instead`: takes `pending` for this one, where it still stands; otherwise the newer of both stays. */
export interface VersionChange extends Versions {
  readonly id: string;
  readonly instead: string;
  readonly keepMs: number;
}

/**
 * A table whose unique constraint has the final word (protocol section 11). Every method answers within the ledger's
 * time limit and none rejects; each can be repeated without harm.
 */
export interface Ledger extends VersionStore {
  /** One more attempt, unless the event is done or another's lease is running. Its own token finds its lease again. */
  take(lease: RowLease): Promise<RowTaken>;
  /** Moves the lease on where it is ours, and puts it back where there is none. `unknown`: its outcome is. */
  extend(lease: RowLease, unknown: boolean): Promise<RowTaken>;
  /** Writes that the event is done, whoever has the lease; the first one stays. `forgotten`: refused, by the floor. */
  complete(lease: RowLease, done: Done): Promise<'written' | 'forgotten' | 'unavailable'>;
  /** Ends the lease if it is ours; `takeBack`: no byte was sent, the attempt does not count. False: unavailable. */
  release(lease: RowLease, takeBack: boolean): Promise<boolean>;
  look(id: string): Promise<LedgerRow | 'none' | 'unavailable'>;
  /** The next attempt is a new one. `force`: even while a lease is running. */
  forget(
    id: string,
    keepMs: number,
    force: boolean,
  ): Promise<
    | { readonly kind: 'forgotten'; readonly attempt: number; readonly running: boolean }
    | { readonly kind: 'in-progress'; readonly leftMs: number }
    | { readonly kind: 'unknown' }
    | { readonly kind: 'unavailable' }
  >;
  /** Whether it answers, as far as is known. */
  readonly up: boolean;
}

/** What goes to the application. */
export interface AppRequest {
  readonly method: string;
  readonly target: string;
  readonly headers: RawHeaders;
  readonly body: Buffer;
  /** The delivery's memory: held while the exchange goes on, and taken from for the reply. */
  readonly share?: Share | undefined;
}

export type AppResult =
  | { readonly kind: 'answered'; readonly reply: AppReply; readonly upstreamMs: number }
  /** No byte was sent. `expired`: `mayStart` said no; `in_flight`/`waiting`: no slot. */
  | { readonly kind: 'never-sent'; readonly why: NeverSent; readonly message: string }
  /**
   * Bytes were sent. The exchange goes on: `late` resolves with its answer, or undefined when it failed or was cut.
   * `headers_timeout`: not even the answer's head came in the time for it.
   */
  | {
      readonly kind: 'unknown';
      readonly how: 'timeout' | 'headers_timeout' | 'reset';
      readonly late: Promise<AppReply | undefined>;
      cut(): void;
    };

export type NeverSent = 'unreachable' | 'connect_timeout' | 'expired' | 'in_flight' | 'waiting';

/** The application. Sends at most once, whatever happens. */
export interface Upstream {
  /** `mayStart` is asked on the very turn that writes the first byte; false: nothing is sent. Never rejects. */
  send(request: AppRequest, mayStart: () => boolean): Promise<AppResult>;
}

/** A key that a sender publishes. Who asks has made sure that the address is the sender's own. */
export interface KeyRequest {
  /** https only. */
  readonly url: string;
  /** Posted as JSON where the sender wants a question; otherwise the URL is read. It may hold credentials. */
  readonly question?: Readonly<Record<string, string>> | undefined;
}

/** What senders publish: certificates and keys. Bounded in time, size and number; no method rejects. */
export interface SenderKeys {
  /** The document, cached once it was had; undefined while it cannot be had. */
  get(request: KeyRequest): Promise<string | undefined>;
  /** Reads a URL once for its effect (a subscription that confirms itself); false when it was not answered with success. */
  visit(url: string): Promise<boolean>;
}

/** Deliveries as traces, where they are exported. Elsewhere there is none, and what a sender says of its trace goes on as it came. */
export interface Tracing {
  /** A request on a route has come. */
  receive(arrival: Arrival): DeliveryTrace;
  /** A delivery that waited in the queue is taken up. */
  resume(resumed: Resumed): DeliveryTrace;
}

export interface Arrival {
  /** Name of the route, or what stands for none. */
  readonly route: string;
  /** Path of the route as it is configured; undefined on none. */
  readonly path?: string | undefined;
  readonly method: string;
  readonly headers: RawHeaders;
  readonly client?: string | undefined;
}

export interface Resumed {
  readonly route: string;
  readonly path: string;
  /** `DeliveryTrace.traceparent` of the delivery that was put in the queue. */
  readonly traceparent: string;
}

export interface DeliveryTrace {
  /** 32 hex digits. */
  readonly traceId: string;
  /** Of the span that stands for the delivery as a whole, 16 hex digits. */
  readonly spanId: string;
  /** By which whoever takes the delivery up later continues the trace. */
  readonly traceparent: string;
  /** The same gate, with a span for each claim, forward and completion; what is forwarded names its span. */
  follow<G extends Traceable>(gate: G): G;
  /** Once, when the delivery is answered. `done`: of a duplicate, what it is a duplicate of. */
  end(report: DeliveryReport, done: Done | undefined): void;
}

export interface Traceable {
  readonly claims: Claims;
  readonly upstream: Upstream;
}

/** Everything that is reported about one delivery, once, when it is answered. */
export interface DeliveryReport {
  readonly route: string;
  readonly outcome: OutcomeKind;
  readonly reason?: RejectReason | string;
  readonly key?: string;
  readonly attempt?: number;
  readonly status: number;
  /** Address of the sender, as far as proxies that are trusted tell it. */
  readonly client?: string;
  readonly totalMs: number;
  readonly claimMs?: number;
  readonly upstreamMs?: number;
  /** What would have become of it, on a route that only observes. */
  readonly observed?: OutcomeKind;
  /** Of the trace that it belongs to. */
  readonly traceId?: string;
  /** Of a delivery that was claimed element by element: how many were won, and how many there are, `3/5`. */
  readonly elements?: string;
}

/** Everything that is reported about one try of a job of the queue, once, when it has ended. */
export interface JobReport {
  readonly route: string;
  /** Its id in the queue. */
  readonly job: string;
  readonly outcome: OutcomeKind | 'error';
  readonly fate: Fate;
  readonly key?: string;
  /** Of the event, as the application is told it. */
  readonly attempt?: number;
  /** Of the job. */
  readonly queueAttempt: number;
  readonly totalMs: number;
  readonly claimMs?: number;
  readonly upstreamMs?: number;
  /** Since it was accepted. */
  readonly waitedMs: number;
  readonly traceId?: string;
}

/** Everything that is reported about a request that was passed through to the application, once, when it has ended. */
export interface ProxyReport {
  /** `uncertain`: the application broke off; `gone`: the client did; `unfit`: it cannot be sent. */
  readonly outcome: 'proxied' | 'unreachable' | 'uncertain' | 'gone' | 'overloaded' | 'unfit';
  readonly method: string;
  /** undefined: nobody was answered. */
  readonly status: number | undefined;
  readonly client?: string;
  /** Until the last byte; of a stream or an upgraded connection, its whole life. */
  readonly totalMs: number;
}

/** `no_quorum`: of voters; `no_identity`: nothing names the event. */
export type Unclaimed = 'no_quorum' | 'no_identity';

export type LockFailure = 'held' | 'split' | 'no_quorum' | 'expired' | 'lost';

/** `dropped`, `marked`: older than what was applied; `maybe`: older than one of unknown outcome; `unread`: no resource or no version could be read. */
export type OrderVerdict = 'dropped' | 'marked' | 'maybe' | 'unread';

export type LedgerOperation = 'take' | 'extend' | 'complete' | 'release' | 'look' | 'forget' | 'order';

/**
 * `agreed`: the claim stands; `alone`: it was decided without a quorum; `done`, `held`: the voters did not know;
 * `skipped`: it did not answer, and the claim stands; `refused`: it did not answer, and the claim was given up.
 */
export type LedgerVerdict = 'agreed' | 'alone' | 'done' | 'held' | 'skipped' | 'refused';

/** One method per business event: the implementation turns it into log line, counter and span together. */
export interface Events {
  deliveryStarted(route: string): void;
  deliveryEnded(report: DeliveryReport): void;
  proxyStarted(): void;
  proxyEnded(report: ProxyReport): void;
  claimEnded(result: ClaimResult['kind'], ms: number): void;
  lockFailed(reason: LockFailure): void;
  lockExtended(result: 'ok' | 'failed' | 'lost'): void;
  attemptRepeated(route: string): void;
  /** A delivery without an identity, whatever the route does with it. */
  identityMissing(route: string): void;
  /** A delivery goes on without a claim: nothing keeps the application from getting it twice. */
  unclaimed(route: string, why: Unclaimed): void;
  /** An id that was handled with another body, whatever the route does with it. */
  otherBody(route: string): void;
  /** A delivery was claimed element by element: so many of its elements were won, the others were handled before. */
  elementsClaimed(route: string, won: number, leftOut: number): void;
  /** A delivery whose elements were to be claimed could not be taken apart, and goes on as one event. */
  undivided(route: string, why: Undivided): void;
  /** A body that was handled under another id, and was not forwarded again. */
  replayBlocked(route: string): void;
  /** A delivery's signature held; `secret`: what the one is called that it was signed with. */
  secretUsed(route: string, secret: string): void;
  /** A delivery was forwarded that would have been stopped, on a route that only observes. */
  observed(route: string, outcome: OutcomeKind): void;
  /** +1 when a copy begins to wait for the outcome of an event in flight, −1 when it is called or gives up. */
  waiting(route: string, change: 1 | -1): void;
  /** How many deliveries wait for one of the places at the application. */
  slotsWaiting(count: number): void;
  /** +1 when a completion goes on in the background, −1 when a quorum has it or it was given up. */
  completionPending(change: 1 | -1): void;
  completionGivenUp(key: string, why: 'max_hold' | 'forgotten'): void;
  /** An uncertain attempt was settled by a late answer. */
  lateAnswer(route: string, status: number | undefined): void;
  /** What became of putting an accepted delivery into the queue. */
  enqueued(route: string, result: Enqueued): void;
  /** One try of a job of the queue has ended. */
  jobEnded(report: JobReport): void;
  /** Whether the queue is connected and takes jobs. */
  queueUp(up: boolean, details?: Record<string, unknown>): void;
  /** Whether the queue keeps what it acknowledged through a power cut, as far as it tells; `why` not. */
  queueDurable(durable: boolean, why: string): void;
  queueDepth(depth: QueueDepth): void;
  /** The worker of a job fell silent; another takes it. */
  jobStalled(job: string): void;
  /** Bytes of bodies held in memory, those of deliveries and replies together. */
  buffered(bytes: number): void;
  /** A voter counts again although no quorum knew what it had forgotten; events before `wallMs` may come again. */
  memoryLost(node: string, wallMs: number): void;
  /** `lastedMs`: for how long it stood as before. */
  voterState(
    node: string,
    state: VoterState,
    details?: Omit<VoterStatus, 'node' | 'state'> & { readonly lastedMs: number },
  ): void;
  /** A gateway that knows other voters than this one uses this voter: their majorities need not meet. */
  membershipConflict(node: string): void;
  /** What the voter does when its memory is full, undefined when it does not say; keys it has dropped that way. */
  voterEviction(node: string, policy: string | undefined, evictedKeys: number | undefined): void;
  voterError(node: string, errorClass: string): void;
  voterCommand(node: string, ms: number): void;
  /** The collector of traces has taken so many spans, or (`error`) has not. */
  spansExported(count: number, error: Error | undefined): void;
  /** Where an event stands in the order of its resource, if it is not simply the newest. */
  outOfOrder(route: string, verdict: OrderVerdict): void;
  /** The ledger answers, or why it does not. */
  ledgerState(up: boolean, why?: string): void;
  ledgerCommand(operation: LedgerOperation, ms: number): void;
  ledgerError(operation: LedgerOperation, errorClass: string): void;
  /** What the ledger had to say about a claim that it was asked about. */
  ledgerVerdict(verdict: LedgerVerdict): void;
  /** A write that was due could not be made: it is repeated as soon as it can be. */
  ledgerWriteFailed(operation: LedgerOperation): void;
  /** How many rows wait to be written. */
  ledgerBehind(rows: number): void;
  /** Rows that will not be written any more: too many waited, or the process ended. */
  ledgerDropped(rows: number): void;
  /** Something that operators must read: start-up warnings, broken neighbours. */
  warn(message: string, details?: Record<string, unknown>): void;
}

/** `why`, unless it is up; `leftMs`: of what ends by itself. */
export interface VoterStatus {
  readonly node: string;
  readonly state: VoterState;
  readonly why?: string | undefined;
  readonly leftMs?: number | undefined;
}

/** `up`: counted; `down`: does not answer; `held`: answers, but does not count (it may have forgotten). */
export type VoterState = 'up' | 'down' | 'held';
