/** When a delivery was signed, and whether that is near enough to now. */
import { allHeaders, type RawHeaders, type Received, type Rejected } from './delivery.ts';
import type { JsonPointer } from './json-pointer.ts';
import { jsonLookup } from './json-value.ts';
import { afterPrefix, onlyLine, rejected } from './signature-items.ts';

export interface TimestampRule {
  /** A header of its own, an item of the signature header that starts with `prefix`, or a value in the signed JSON body. */
  readonly from: { readonly header: string } | { readonly prefix: string } | { readonly json: JsonPointer };
  readonly unit: 's' | 'ms';
  /** Largest distance from now, to either side; undefined: the sender's retries carry the first one's timestamp, so any passes. */
  readonly toleranceMs: number | undefined;
  /** Another limit for timestamps that lie ahead, where `toleranceMs` covers the sender's retries: they only ever get older. */
  readonly aheadMs?: number | undefined;
}

/**
 * The timestamp as it was signed: digits only, exactly one. Parsers that forgive more forgive it differently.
 * Where no window hangs on it, it may be empty, as for the senders' own libraries: digits that moved to the
 * body next to it have made that unreadable.
 */
export function timestampText(rule: TimestampRule, items: readonly string[], received: Received): string | Rejected {
  const text = findText(rule, items, received.headers, received.body);
  if (typeof text !== 'string') return text;
  return (rule.toleranceMs === undefined ? /^[0-9]{0,15}$/ : /^[0-9]{1,15}$/).test(text)
    ? text
    : rejected('bad_signature', "the signature's timestamp is not one number of digits only");
}

function findText(rule: TimestampRule, items: readonly string[], headers: RawHeaders, body: Buffer): string | Rejected {
  if ('header' in rule.from) {
    const lines = allHeaders(headers, rule.from.header);
    return rule.toleranceMs === undefined && lines.length === 1 ? lines[0]! : onlyLine(headers, rule.from.header);
  }
  if ('json' in rule.from) return jsonLookup(body).value(rule.from.json)?.text ?? '';
  const found = afterPrefix(items, rule.from.prefix);
  return found.length === 1 ? found[0]! : '';
}

/** Whole units of now, as the sender counts them: exactly the tolerance still passes. Undefined when near enough. */
export function staleness(rule: TimestampRule, text: string, wallMs: number): Rejected | undefined {
  const { toleranceMs, aheadMs = toleranceMs } = rule;
  if (toleranceMs === undefined || aheadMs === undefined) return undefined;
  const unitMs = rule.unit === 's' ? 1000 : 1;
  const ageMs = (Math.floor(wallMs / unitMs) - Number(text)) * unitMs;
  if (ageMs <= toleranceMs && -ageMs <= aheadMs) return undefined;
  const limitMs = ageMs > 0 ? toleranceMs : aheadMs;
  return rejected('stale_signature', `the signature's timestamp is more than ${limitMs / 1000} s away from now`);
}
