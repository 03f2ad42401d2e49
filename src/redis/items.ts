/**
 * What a voter can be asked and what it can answer. One batch of items is one run of the script
 * (`script.ts`), or of its model (`model.ts`); both understand exactly this.
 */

/** Where an event's two keys live. `id`: the 22 characters of `DeliveryKey`. All `…Ms` are lives, integers. */
export type Item =
  /** Take the lock and count an attempt, unless the event is done or another holds it. */
  | {
      readonly op: 'claim';
      readonly id: string;
      readonly token: string;
      readonly lockMs: number;
      readonly recordMs: number;
    }
  /** Raise the record to the attempt that the claim won with; needs the lock. */
  | {
      readonly op: 'confirm';
      readonly id: string;
      readonly token: string;
      readonly attempt: number;
      readonly recordMs: number;
    }
  /** Move the lock's end; `unknown` also says that its outcome is unknown. Needs the lock. */
  | {
      readonly op: 'extend';
      readonly id: string;
      readonly token: string;
      readonly lockMs: number;
      readonly unknown: boolean;
    }
  /** Put back a lock that this voter lost, where nobody else took it. */
  | {
      readonly op: 'heal';
      readonly id: string;
      readonly token: string;
      readonly lockMs: number;
      readonly attempt: number;
      readonly recordMs: number;
    }
  /** Write the done record, whoever holds the lock. */
  | {
      readonly op: 'complete';
      readonly id: string;
      readonly token: string;
      readonly attempt: number;
      readonly content: string;
      readonly recordMs: number;
    }
  /** Give the lock up; `takeBack`: no byte was sent, so the attempt may be taken back too. Needs the lock. */
  | { readonly op: 'release'; readonly id: string; readonly token: string; readonly takeBack: boolean }
  /** Copy a done record that another voter showed, and drop our lock. */
  | {
      readonly op: 'repair';
      readonly id: string;
      readonly token: string;
      readonly attempt: number;
      readonly content: string;
      readonly recordMs: number;
    }
  | { readonly op: 'peek'; readonly id: string }
  /** Say who we are to a new connection; see `voter.ts`. `lifeMs`: the longest life a lock can be given. */
  | {
      readonly op: 'hello';
      readonly nonce: string;
      readonly lifeMs: number;
      readonly name: string;
      /** As far as it is known: whether nothing is acknowledged before it is on disk. */
      readonly appendfsync?: 'always' | 'other' | undefined;
    }
  /** Its clock stepped forward, so that locks may have ended before their time. Of no effect on another boot. */
  | { readonly op: 'stepped'; readonly boot: string; readonly nonce: string }
  /** The record alone, to copy it to a voter that lost its own. */
  | { readonly op: 'read'; readonly id: string }
  /** Take over a record of another voter: done wins, else the higher attempt; the higher floor. */
  | {
      readonly op: 'learn';
      readonly id: string;
      readonly done: boolean;
      readonly attempt: number;
      readonly floor: number;
      readonly content: string;
      readonly recordMs: number;
    }
  /**
   * Change the versions of a resource, a record of its own kind: the newer of both stays. `instead`: `pending` takes the
   * place of this one where it still stands, older or not. Without any of them it only reads.
   */
  | {
      readonly op: 'order';
      readonly id: string;
      readonly applied: string;
      readonly pending: string;
      readonly instead: string;
      readonly recordMs: number;
    }
  /** The lock alone, whatever the record says. */
  | { readonly op: 'look'; readonly id: string }
  /** The right to copy records to this voter, for a while; again for whoever has it. */
  | { readonly op: 'sync'; readonly token: string; readonly lockMs: number }
  /** Count again, after records were copied. `lostWallMs`: events before this instant may be forgotten; 0: none are. */
  | { readonly op: 'admit'; readonly boot: string; readonly lostWallMs: number }
  /**
   * A gateway of `service` is here, for `ms`: `own` is the digest of the voters that it knows, empty while it knows two lists. Says
   * for as long that the voter is on hold, if it is, to whoever looks after its server.
   */
  | { readonly op: 'present'; readonly service: string; readonly own: string; readonly ms: number }
  /** On hold until it has learnt its records anew. Of no effect on another boot, and on one that has to learn anyway. */
  | { readonly op: 'relearn'; readonly boot: string; readonly nonce: string }
  /** Lift the hold of a voter that was empty when first met (first installation). `boot`: as `hello` told it. */
  | { readonly op: 'trust'; readonly boot: string };

/** `floor`: attempts at or below it were forgotten on purpose; a done record there is void. */
export type Answer =
  /** `counted`: false while the voter is on hold, or was when it granted the lock. */
  | { readonly status: 'ok'; readonly counted: boolean; readonly attempt: number; readonly floor: number }
  | {
      readonly status: 'done';
      readonly attempt: number;
      readonly floor: number;
      readonly content: string;
      readonly leftMs: number;
    }
  | {
      readonly status: 'held';
      readonly token: string;
      readonly unknown: boolean;
      readonly leftMs: number;
      readonly floor: number;
    }
  /** The lock is not ours (any more). */
  | { readonly status: 'lost'; readonly floor: number }
  /** Refused: at or below the floor. */
  | { readonly status: 'forgotten'; readonly floor: number }
  /** From `peek`: neither done nor locked. */
  | { readonly status: 'free'; readonly counted: boolean; readonly attempt: number; readonly floor: number }
  /** From `read`. */
  | {
      readonly status: 'record';
      readonly done: boolean;
      readonly attempt: number;
      readonly floor: number;
      readonly content: string;
      readonly leftMs: number;
    }
  /** From `order`: what the versions were before. From `read`, where the record is one of versions. */
  | {
      readonly status: 'versions';
      readonly counted: boolean;
      readonly applied: string;
      readonly pending: string;
      readonly leftMs: number;
    }
  /** From `look`. `token` is empty where there is no lock. */
  | { readonly status: 'lock'; readonly token: string; readonly unknown: boolean; readonly leftMs: number }
  /** The voter has no marker: it lost its memory since `hello`. Proves that nothing was granted. */
  | { readonly status: 'no-marker' }
  /**
   * `hold`: why its ok does not count, empty when it does. `leftMs`: of the hold, −1 without end.
   * `lostWallMs`: events before this instant may be forgotten, epoch milliseconds; 0: none are.
   */
  | { readonly status: 'hello'; readonly hold: Hold; readonly leftMs: number; readonly lostWallMs: number }
  /** `own` of the last gateway of the service that was here with one list, within its time; empty where there was none. */
  | { readonly status: 'present'; readonly own: string }
  /** This item failed on the voter; the others of its batch did not. Proves nothing. */
  | { readonly status: 'error'; readonly message: string };

/** `locks`: restarted with its records; `records`: may have lost them; `empty`: had no key at all when first met. */
export type Hold = '' | 'locks' | 'records' | 'empty';

/** One run over one batch. `boot` is empty without a marker. */
export interface BatchAnswer {
  readonly boot: string;
  readonly held: boolean;
  readonly answers: readonly Answer[];
}

/** Slack for the difference between the voters' clocks and ours over `ms`: 1 % and 2 ms (protocol section 3). */
export const drift = (ms: number): number => ms * 0.01 + 2;

/** How long a voter that lost its locks must not count: the longest lock, drift, one second (protocol section 6). */
export const lockHoldMs = (lifeMs: number): number => Math.ceil(lifeMs + drift(lifeMs) + 1000);
