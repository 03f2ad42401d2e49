/** A route as the core sees it: compiled from configuration and sender preset, immutable. */
import type { Key } from './delivery.ts';
import type { ElementRule } from './elements.ts';
import type { Handshake } from './handshake.ts';
import type { IdentityRule } from './identify.ts';
import type { OrderRule } from './order.ts';
import type { PublicUrl } from './public-url.ts';
import type { SignatureRule } from './verify.ts';

export interface Route {
  readonly name: string;
  /** Exact path, or a prefix that ends in `/*`. */
  readonly path: string;
  /** Name of the sender preset, or `custom`. */
  readonly sender: string;
  readonly signature: SignatureRule;
  /** What was signed: the bytes as they come (the rule), or what a content coding hides. */
  readonly signatureOver?: 'decoded' | undefined;
  /** Decoded; any of them may sign. */
  readonly secrets: readonly Key[];
  /** What each of them is called in metrics, in the same order. */
  readonly secretNames?: readonly string[] | undefined;
  /** Where the sender posts to, for signatures that cover it. */
  readonly publicUrl?: PublicUrl | undefined;
  readonly handshake?: Handshake | undefined;
  /** A secret for the handshake alone. */
  readonly handshakeToken?: Buffer | undefined;
  /** Whether a secret that the sender hands over in its handshake may be written to the log. */
  readonly handshakeReveal?: boolean | undefined;
  readonly identity: IdentityRule;
  /** Deliveries are taken apart by this rule, and each element is an event. Without it, or where it does not fit, `identity` names the whole. */
  readonly elements?: ElementRule | undefined;
  /** What becomes of an event that was handled before, when it comes again with another body. Default: `ignore`. */
  readonly fingerprint?: 'ignore' | 'refuse' | 'forward' | undefined;
  /** Content that was handled within `windowMs` is not forwarded again under another id. */
  readonly replayGuard?: { readonly of: 'body' | 'signed-id'; readonly windowMs: number } | undefined;
  readonly inFlight: InFlight;
  /** Events of one resource are forwarded one at a time, and none after a newer one. */
  readonly ordering?: OrderRule | undefined;
  /** Limits of its own: bytes of one body, instead of the limit for all; deliveries that are unanswered at the same time. */
  readonly limits?: { readonly bodyBytes?: number | undefined; readonly inFlight?: number | undefined } | undefined;
  readonly onUnavailable: 'reject' | 'forward' | 'ledger';
  readonly duplicateReply: 'empty' | 'stored';
  /** The status that the sender takes for success: 200, or what it requires (204 for Discord events). */
  readonly successStatus: number;
  /** Statuses beside 200–299 that complete the event. */
  readonly completeOn: readonly number[];
  readonly retentionMs: number;
  /** Deliveries are put in the queue, and answered with this status once they lie there. */
  readonly async?: { readonly acceptedStatus: number } | undefined;
  /** Nothing is stopped (`core/observe.ts`). */
  readonly observe?: boolean | undefined;
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
