/** A sender preset: who posts webhooks, and what is known about it. Data, plus a pure function where its scheme is like no other. */
import type { Key } from './delivery.ts';
import type { ElementRule } from './elements.ts';
import type { Handshake } from './handshake.ts';
import type { IdentityRule } from './identify.ts';
import type { OrderRule } from './order.ts';
import type { SignatureRule } from './verify.ts';

export interface Sender {
  /** As in `sender: stripe`; lower case, digits, hyphens. */
  readonly name: string;
  /** As people write it. */
  readonly title: string;
  readonly signature: SignatureRule;
  /** What a route's secrets are for this sender: "the signing secret (`whsec_…`) of the endpoint". */
  readonly secret: string;
  /**
   * Turns a configured secret, its trailing newline dropped, into a key; a string is the problem with it, in
   * words that never repeat the secret.
   */
  readonly decodeSecret: (text: string) => Key | string;
  readonly identity: IdentityRule;
  /** Of senders that put several events into one delivery: where they lie, and what names each of them. */
  readonly elements?: ElementRule | undefined;
  /** What of a delivery the signature does not cover, although somebody may rely on it. */
  readonly notCovered?: readonly string[] | undefined;
  /** What a replay under another id still has in common with the first: the body, or the signed id where the body is not covered. */
  readonly replayedBy?: 'body' | 'signed-id' | undefined;
  /** Never two events have that in common: replays are guarded against unless the route says otherwise. */
  readonly guarded?: boolean | undefined;
  /** How the sender makes sure of an endpoint before it sends events there. */
  readonly handshake?: Handshake | undefined;
  /** What of a delivery is a resource and its version, where the sender says so. */
  readonly ordering?: Omit<OrderRule, 'onStale'> | undefined;
  /** The status that this sender takes for success. */
  readonly successStatus: number;
  /** Nothing else is success to it, not even another 2xx. */
  readonly onlyStatus?: true | undefined;
  /** Time after which the sender gives a delivery up; undefined where none is published. */
  readonly timeLimitMs: number | undefined;
  /** How long after the first delivery an automatic retry may still come; 0: the sender never retries. */
  readonly retryHorizonMs: number;
  /** When the last automatic retry comes in the sender's default schedule, counted from the first delivery. */
  readonly lastRetryMs?: number | undefined;
  /** What to do at the sender, in order. */
  readonly setup: readonly string[];
  /** What an operator should know before relying on it. */
  readonly cautions: readonly string[];
  /** Facts above that no page or code of the sender was found for. */
  readonly unverified?: readonly string[] | undefined;
  /** Where the facts come from. */
  readonly sources: readonly string[];
}
