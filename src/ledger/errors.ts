/** Why PostgreSQL gave no usable answer. */

/** A closed set: it becomes a label. */
export type LedgerErrorClass =
  | 'timeout'
  | 'refused'
  | 'cut'
  | 'readonly'
  | 'auth'
  | 'tls'
  | 'starting'
  | 'full'
  | 'schema'
  | 'other';

/** SQLSTATE by its beginning (PostgreSQL documentation, appendix A). */
const STATES: readonly (readonly [string, LedgerErrorClass])[] = [
  ['25006', 'readonly'],
  ['28', 'auth'],
  ['3D000', 'schema'],
  ['3F000', 'schema'],
  ['42', 'schema'],
  ['53', 'full'],
  ['57014', 'timeout'],
  ['55P03', 'timeout'],
  ['57P03', 'starting'],
  ['57P', 'cut'],
  ['08', 'cut'],
];
const REFUSED = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'];

export class DeadlineError extends Error {}

export function classOf(error: unknown): LedgerErrorClass {
  if (error instanceof DeadlineError) return 'timeout';
  if (!(error instanceof Error)) return 'other';
  const code = 'code' in error ? String(error.code) : '';
  if (REFUSED.includes(code)) return 'refused';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'cut';
  if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO)/.test(code)) return 'tls';
  const state = STATES.find(([start]) => code.startsWith(start));
  if (state) return state[1];
  if (/does not support SSL/i.test(error.message)) return 'tls';
  if (/timeout/i.test(error.message)) return 'timeout';
  return /connection (terminated|ended)|not queryable|connection error/i.test(error.message) ? 'cut' : 'other';
}

/** Whether another connection may do better at once: the server went away, or is not the primary any more. */
export const isStale = (why: LedgerErrorClass): boolean => why === 'cut' || why === 'readonly';
