/** A sender preset: who posts webhooks, and what is known about it. Data, plus one pure function. */
import type { IdentityRule } from './identify.ts';
import type { SignatureRule } from './verify.ts';

export interface Sender {
  /** As in `sender: stripe`; lower case, digits, hyphens. */
  readonly name: string;
  /** As people write it. */
  readonly title: string;
  readonly signature: SignatureRule;
  /**
   * Turns a configured secret, its trailing newline dropped, into key bytes; a string is the problem
   * with it, in words that never repeat the secret.
   */
  readonly decodeSecret: (text: string) => Buffer | string;
  readonly identity: IdentityRule;
  /** The status that this sender takes for success. */
  readonly successStatus: number;
  /** Time after which the sender gives a delivery up; undefined where none is published. */
  readonly timeLimitMs: number | undefined;
  /** How long after the first delivery an automatic retry may still come; 0: the sender never retries. */
  readonly retryHorizonMs: number;
  /** When the last automatic retry comes in the sender's default schedule, counted from the first delivery. */
  readonly lastRetryMs?: number | undefined;
  /** Where the facts come from. */
  readonly sources: readonly string[];
  /** What an operator should know before relying on it. */
  readonly cautions: readonly string[];
}

/** The key is the text's UTF-8 bytes, as most senders mean it. */
export function textSecret(text: string): Buffer | string {
  return text.trim() === '' ? 'is blank' : Buffer.from(text, 'utf8');
}
