/** How signature schemes read headers: one line, and the items in it. */
import { allHeaders, type RawHeaders, type Rejected, type RejectReason } from './delivery.ts';

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

export function rejected(reason: RejectReason, message: string): Rejected {
  return { kind: 'rejected', reason, message };
}
