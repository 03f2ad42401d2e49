/**
 * The only interfaces: what the core needs of the world. Each has two implementations that pass one
 * contract suite (`test/contract`), so that neither can lie about the other.
 */
import type { AppReply, DeliveryKey, Done, OutcomeKind, RawHeaders, RejectReason } from './delivery.ts';
import type { Share } from './memory.ts';

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
  /** Milliseconds for which a quorum is known to be held; negative once over. Moves on with `extend`. */
  validForMs(): number;
  /** True while there is still time to begin work (a third of the lock's life). */
  mayStart(): boolean;
}

export type ClaimResult =
  | { readonly kind: 'won'; readonly lease: Lease }
  /** `replay`: the content was handled, under another id. */
  | { readonly kind: 'done'; readonly done: Done; readonly replay?: true | undefined }
  /** `unknown`: its holder has sent bytes and got no answer; it will not end before `leftMs`. `split`: nobody may be holding it. */
  | { readonly kind: 'held'; readonly leftMs: number; readonly unknown: boolean; readonly split: boolean }
  | { readonly kind: 'unavailable' };

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
  /** No byte was sent. `expired`: `mayStart` said no; `in_flight`/`waiting`: no slot, see design 12. */
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

export type LockFailure = 'held' | 'split' | 'no_quorum' | 'expired' | 'lost';

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
  /** An id that was handled with another body, whatever the route does with it. */
  otherBody(route: string): void;
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
  /** What the voter does when its memory is full, undefined when it does not say; keys it has dropped that way. */
  voterEviction(node: string, policy: string | undefined, evictedKeys: number | undefined): void;
  voterError(node: string, errorClass: string): void;
  voterCommand(node: string, ms: number): void;
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
