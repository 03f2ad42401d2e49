/** The values that labels take: closed unions, complete by type, so that their series are there with 0 before anything happens. */
import type { OutcomeKind, RejectReason } from '../core/delivery.ts';
import type { Undivided } from '../core/elements.ts';
import type {
  ClaimResult,
  Events,
  LedgerOperation,
  LedgerVerdict,
  LockFailure,
  OrderVerdict,
  ProxyReport,
  Unclaimed,
  VoterState,
} from '../core/ports.ts';
import type { RouteLabels } from './route-series.ts';

/** What became of the configuration when it was read anew. */
export type ConfigRead =
  /** `waiting`: settings that changed and that only a restart brings. */
  | {
      readonly kind: 'applied';
      readonly routes: readonly RouteLabels[];
      readonly waiting: readonly string[];
      readonly warnings: readonly string[];
    }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly complaints: readonly string[] };

export const OUTCOMES: Record<OutcomeKind, true> = {
  delivered: true,
  refused: true,
  duplicate: true,
  'in-progress': true,
  rejected: true,
  handshake: true,
  unreachable: true,
  uncertain: true,
  unavailable: true,
  overloaded: true,
  accepted: true,
  stale: true,
};
export const REASONS: Record<RejectReason | 'method' | 'upgrade' | 'slow', true> = {
  bad_signature: true,
  missing_signature: true,
  stale_signature: true,
  no_identity: true,
  other_body: true,
  too_large: true,
  unsupported_coding: true,
  bad_request: true,
  method: true,
  upgrade: true,
  slow: true,
};
/** What becomes of the elements of deliveries that are claimed element by element. */
export const ELEMENTS = { claimed: true, left_out: true } as const;
export const UNDIVIDED: Record<Undivided, true> = { too_many: true, unnamed: true };
/** Why there was no answer of the application; `error` is a bug of the gateway. */
export const FAILURES = {
  connect: true,
  connect_timeout: true,
  headers_timeout: true,
  timeout: true,
  reset: true,
  error: true,
} as const;
export const PROXIED: Record<ProxyReport['outcome'], true> = {
  proxied: true,
  unreachable: true,
  uncertain: true,
  gone: true,
  overloaded: true,
  unfit: true,
};
/** The route label of whatever is on no route: a path is never a label. */
export const UNMATCHED = 'unmatched';
export const FOR_A_SLOT = { queue: 'upstream', state: 'waiting' };
export const UNCLAIMED: Record<Unclaimed, true> = { no_quorum: true, no_identity: true };
export const LOCK_FAILURES: Record<LockFailure, true> = {
  held: true,
  split: true,
  no_quorum: true,
  expired: true,
  lost: true,
};
export const EXTENSIONS: Record<Parameters<Events['lockExtended']>[0], true> = { ok: true, failed: true, lost: true };
export const CLAIM_RESULTS: Record<ClaimResult['kind'], true> = {
  won: true,
  done: true,
  held: true,
  unavailable: true,
};
export const CONFIG_READS: Record<ConfigRead['kind'], true> = { applied: true, unchanged: true, refused: true };
/** The usual ways in which a voter gives no answer that counts; rarer ones are there once they have happened. */
export const VOTER_ERRORS = [
  'timeout',
  'refused',
  'disconnected',
  'loading',
  'readonly',
  'oom',
  'auth',
  'misconf',
  'down',
];
export const SPAN_RESULTS = { exported: true, failed: true } as const;
export const VOTER_STATES: Record<VoterState, true> = { up: true, down: true, held: true };

export function keys<K extends string>(of: Record<K, true>): K[] {
  return Object.keys(of) as K[];
}
export const LEDGER_OPERATIONS: Record<LedgerOperation, true> = {
  take: true,
  extend: true,
  complete: true,
  release: true,
  look: true,
  forget: true,
  order: true,
};
export const LEDGER_VERDICTS: Record<LedgerVerdict, true> = {
  agreed: true,
  alone: true,
  done: true,
  held: true,
  skipped: true,
  refused: true,
};
export const ORDER_VERDICTS: Record<OrderVerdict, true> = { dropped: true, marked: true, maybe: true, unread: true };
/** The ladder, from whole to nothing: what decides claims at this time. */
export const DEGRADATION = { none: true, voters_missing: true, ledger_only: true, no_quorum: true } as const;
