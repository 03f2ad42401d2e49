/** A route as the core sees it: compiled from configuration and sender preset, immutable. */
import type { IdentityRule } from './identify.ts';
import type { SignatureRule } from './verify.ts';

export interface Route {
  readonly name: string;
  /** Exact path, or a prefix that ends in `/*`. */
  readonly path: string;
  /** Name of the sender preset, or `custom`. */
  readonly sender: string;
  readonly signature: SignatureRule;
  /** Key material, decoded; any of them may sign. */
  readonly secrets: readonly Buffer[];
  readonly identity: IdentityRule;
  readonly inFlight: InFlight;
  readonly onUnavailable: 'reject' | 'forward';
  readonly duplicateReply: 'empty' | 'stored';
  /** The status that the sender takes for success: 200, or what it requires (204 for Discord events). */
  readonly successStatus: number;
  /** Statuses beside 200–299 that complete the event. */
  readonly completeOn: readonly number[];
  readonly retentionMs: number;
}

export interface InFlight {
  readonly policy: 'wait' | 'reject' | 'accept';
  readonly waitMs: number;
  readonly maxWaiters: number;
}

/** Whether the application's status ends the event. */
export function completes(route: Pick<Route, 'completeOn'>, status: number): boolean {
  return (status >= 200 && status <= 299) || route.completeOn.includes(status);
}
