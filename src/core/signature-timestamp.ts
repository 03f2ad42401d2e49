/** When a delivery was signed, and whether that is near enough to now. */
import type { RawHeaders, Rejected } from './delivery.ts';
import { afterPrefix, onlyLine, rejected } from './signature-items.ts';

export interface TimestampRule {
  /** A header of its own, or an item of the signature header that starts with `prefix`. */
  readonly from: { readonly header: string } | { readonly prefix: string };
  readonly unit: 's' | 'ms';
  /** Largest distance from now, to either side. */
  readonly toleranceMs: number;
}

/** The timestamp as it was signed: digits only, exactly one. Parsers that forgive more forgive it differently. */
export function timestampText(rule: TimestampRule, items: readonly string[], headers: RawHeaders): string | Rejected {
  const text = 'header' in rule.from ? onlyLine(headers, rule.from.header) : onlyItem(items, rule.from.prefix);
  if (typeof text !== 'string' || /^[0-9]{1,15}$/.test(text)) return text;
  return rejected('bad_signature', "the signature's timestamp is not one number of digits only");
}

const onlyItem = (items: readonly string[], prefix: string): string => {
  const found = afterPrefix(items, prefix);
  return found.length === 1 ? found[0]! : '';
};

/** Whole units of now, as the sender counts them: exactly the tolerance still passes, on both sides. */
export function isNear(rule: TimestampRule, text: string, wallMs: number): boolean {
  const unitMs = rule.unit === 's' ? 1000 : 1;
  return Math.abs(Math.floor(wallMs / unitMs) - Number(text)) * unitMs <= rule.toleranceMs;
}
