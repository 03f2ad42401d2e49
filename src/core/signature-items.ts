/** What all signature schemes share: how they read a delivery, and what they answer. */
import { allHeaders, type Key, type RawHeaders, type Rejected, type RejectReason } from './delivery.ts';

/** What a signature is judged by, beside the delivery itself. */
export interface Circumstances {
  readonly secrets: readonly Key[];
  /** Now, epoch milliseconds. */
  readonly wallMs: number;
  /** The URL that the sender has posted to; undefined where the route does not say. */
  readonly url?: string | undefined;
  /** What was found at the address that the rule named (`OwnRule.published`). */
  readonly published?: string | undefined;
}

/** `key`: the one that signed. `signedId`: the message id that the signature covers, where there is one. */
export type Checked =
  | { readonly kind: 'matched'; readonly key?: Key | undefined; readonly signedId?: string | undefined }
  | Rejected;

/**
 * The value of a header that decides about trust. Two lines are refused, whatever they say: which one the
 * next reader would believe is anyone's guess.
 */
export function onlyLine(headers: RawHeaders, name: string): string | Rejected {
  const lines = allHeaders(headers, name);
  if (lines.length > 1) return rejected('bad_signature', `header ${name} is there ${lines.length} times`);
  return lines[0] || rejected('missing_signature', `header ${name} is missing`);
}

/** What stands behind the prefix, in those items that begin with it. */
export function afterPrefix(items: readonly string[], prefix: string): string[] {
  return items.filter((item) => item.startsWith(prefix)).map((item) => item.slice(prefix.length));
}

export const notAtPublicUrl = 'the signature covers the URL, and the request is not at the public URL of this route';

export function rejected(reason: RejectReason, message: string): Rejected {
  return { kind: 'rejected', reason, message };
}

/** Shared secrets that are worth anything: an empty one is known to everybody. */
export function sharedSecrets(keys: readonly Key[]): Buffer[] {
  return keys.filter((key): key is Buffer => Buffer.isBuffer(key) && key.length > 0);
}
