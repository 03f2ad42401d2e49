/** What an operator can ask about one event, and order. The answers hold no secret, and no body. */
import type { DeliveryKey } from './delivery.ts';

export interface Operator {
  /** Asks every voter, reading only. */
  explain(key: DeliveryKey): Promise<Explanation>;
  /**
   * Makes the next delivery be processed, as the next attempt. `retentionMs`: how long the route remembers an event.
   * `force`: even while an attempt is running, whose completion is refused then.
   */
  forget(key: DeliveryKey, retentionMs: number, force: boolean): Promise<Forgetting>;
}

export interface Explanation {
  readonly voters: readonly VoterView[];
  readonly forecast: Forecast;
  /** Of an event in async mode: what a worker that took it now would find. */
  readonly work?: Forecast | undefined;
  /** Undefined: there is no ledger. */
  readonly ledger?: LedgerView | undefined;
}

/** What the ledger's row says of the event. */
export type LedgerView =
  /** `none`: it does not answer. */
  | { readonly answer: 'none' | 'no row' }
  | {
      readonly answer: 'free' | 'held' | 'done';
      readonly lock: LockView | undefined;
      readonly record: RecordView;
    };

/** What one voter knows of the event. All `…Ms` are lives that are left. */
export type VoterView =
  /** `why`: class of the error. */
  | { readonly node: string; readonly answer: 'none'; readonly why: string }
  | {
      readonly node: string;
      /** What it would answer to a claim. */
      readonly answer: 'ok' | 'held' | 'done' | 'no marker';
      /** Why its ok would not count; empty when it would. */
      readonly hold: string;
      /** Changes when the voter has started anew. */
      readonly boot: string;
      readonly lock: LockView | undefined;
      readonly record: RecordView | undefined;
    };

export interface LockView {
  /** Begins the token of the attempt that holds it. */
  readonly holder: string;
  /** The application was sent the event and has not answered in time. */
  readonly unknown: boolean;
  readonly leftMs: number;
}

export interface RecordView {
  /** Attempts so far. */
  readonly attempt: number;
  /** Attempts up to this one were forgotten by an operator; 0: none. */
  readonly floor: number;
  readonly leftMs: number;
  readonly done: DoneView | undefined;
}

export interface DoneView {
  /** Status with which the application completed it. */
  readonly status: number;
  /** When; epoch milliseconds. */
  readonly wallMs: number;
  /** Empty without one. */
  readonly traceId: string;
}

/** What a delivery that came now would find. */
export type Forecast =
  | { readonly kind: 'forwarded'; readonly attempt: number }
  | ({ readonly kind: 'duplicate'; readonly attempt: number } & DoneView)
  | { readonly kind: 'in-progress'; readonly unknown: boolean; readonly leftMs: number }
  /** Too few voters count; `ledger`: there is nothing but the ledger, and it does not answer. */
  | { readonly kind: 'unavailable'; readonly ledger?: true }
  /** No majority for anything. */
  | { readonly kind: 'split'; readonly leftMs: number };

export type Forgetting =
  /** The next delivery is attempt `attempt` + 1. `running`: an attempt still holds the event. */
  | { readonly kind: 'forgotten'; readonly attempt: number; readonly running: boolean }
  /** No voter knows the event. */
  | { readonly kind: 'unknown' }
  /** Refused: an attempt holds the event. Nothing was written. */
  | { readonly kind: 'in-progress'; readonly leftMs: number }
  /** These voters still remember the event, or may. */
  | { readonly kind: 'incomplete'; readonly remember: readonly { readonly node: string; readonly why: string }[] };
