/** What one run is like: drawn from the seed before it begins. */

/** All in milliseconds unless said otherwise. */
export interface Plan {
  readonly profile: string;
  /** Nothing but delays and, at most, a minority of voters away: no lock may be lost and nothing is ever repeated. */
  readonly quiet: boolean;
  readonly voters: number;
  readonly gateways: number;
  readonly lockTtlMs: number;
  readonly voterTimeoutMs: number;
  readonly budgetMs: number;
  readonly unknownHoldMs: number;
  readonly maxHoldMs: number;
  readonly upstreamTimeoutMs: number;
  readonly maxWaitMs: number;
  /** How long a copy waits for the outcome of another; 0: it is refused at once. */
  readonly copyWaitMs: number;
  readonly firstStart: 'wait' | 'trust';
  /** How long a majority may have forgotten before the service goes on without what it knew. */
  readonly recoverAfterMs: number;
  /** Whether a restarted voter comes back with its keys. */
  readonly aof: boolean;
  /** With them, nothing that it has answered is ever lost, and it says so (`appendfsync always`). */
  readonly always: boolean;
  /** One way between a gateway and a voter. */
  readonly delayMs: readonly [number, number];
  /** Probability that a message takes up to `tailMs` instead. */
  readonly tail: number;
  readonly tailMs: number;
  /** Probability that a request, or its reply, is never heard of. */
  readonly loss: number;
  /** Whether a connection delivers in order, as TCP does. */
  readonly ordered: boolean;
  readonly copies: readonly Copy[];
  readonly application: ApplicationPlan;
  readonly faults: readonly Fault[];
  /** Messages are lost, or very late, from here on; and from `calmAtMs` on everything works. */
  readonly troubleFromMs: number;
  readonly calmAtMs: number;
}

/** One sender's delivery of the event; it is repeated until it is answered with success. */
export interface Copy {
  readonly atMs: number;
  readonly gateway: number;
  readonly retryMs: readonly [number, number];
  /** Sends once more after success: its answer was lost on the way. */
  readonly again: boolean;
}

/** Probabilities of what becomes of a request, the rest succeeds; and how long the work takes. */
export interface ApplicationPlan {
  readonly refused: number;
  readonly busy: number;
  readonly failed: number;
  /** Success, but the answer comes after the gateway's time limit, or never. */
  readonly late: number;
  readonly silent: number;
  readonly reset: number;
  /** Failure, answered after the time limit. */
  readonly lateFailed: number;
  readonly workMs: readonly [number, number];
  readonly longWork: number;
  readonly longWorkMs: number;
  /** Time until there is a slot and a connection. */
  readonly slotMs: number;
}

export type FaultKind = keyof typeof FAULT_LENGTHS;

/** When: at an instant, or right after the `nth` time that a voter has run an item of this kind. */
export interface Fault {
  readonly kind: FaultKind;
  readonly when: { readonly atMs: number } | { readonly op: string; readonly nth: number };
  readonly voter: number;
  readonly gateway: number;
  /** It befalls `voter`, whichever voter it was that ran the item. */
  readonly elsewhere?: true;
  readonly lengthMs: number;
  /** Of a power cut: how much of what was written last is lost. */
  readonly lostMs: number;
}

/** How long each lasts, in lives of a lock. */
export const FAULT_LENGTHS = {
  cut: [0, 0],
  stall: [0.02, 1.5],
  deaf: [0.02, 1.5],
  kill: [0.01, 1],
  'power cut': [0.01, 1],
  'empty restart': [0.01, 0.5],
  flush: [0, 0],
  freeze: [0.05, 2],
  'script flush': [0, 0],
  lapse: [0.1, 2.5],
  death: [0.1, 1],
  forget: [0, 0],
} as const satisfies Record<string, readonly [number, number]>;

export const FAULT_KINDS = Object.keys(FAULT_LENGTHS) as FaultKind[];
