/**
 * Versions of a resource, written such that texts compare like the versions do: letter by letter, in this program, in
 * the voters' script and in the ledger's columns (collation C). Letters and digits only.
 *
 *     1 <digits before the point, 2> <digits> <digits after the point, without zeros at the end>
 *     0 <99 − digits before the point> <9 − each digit> <12 of them after the point>                  below zero
 */

export type VersionType = 'number' | 'timestamp';

const MOST_DIGITS = 40;
const FRACTION = 12;

/** Undefined for what is no version of this type: it cannot be told from others. Digits beyond 12 after the point are cut. */
export function versionOf(type: VersionType, text: string): string | undefined {
  return type === 'number' ? numberVersion(text.trim()) : timestampVersion(text.trim());
}

/** A decimal number, as JSON writes it. */
function numberVersion(text: string): string | undefined {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d{1,60})(?:\.(\d{1,60}))?(?:[eE]([+-]?\d{1,3}))?$/.exec(text) ?? [];
  if (whole === '') return undefined;
  const point = whole.length + Number(exponent);
  const digits = whole + fraction;
  const before = point <= 0 ? '' : digits.slice(0, point).padEnd(point, '0');
  const after = point < 0 ? '0'.repeat(-point) + digits : digits.slice(point);
  return written(sign === '-', before, after);
}

/** RFC 3339 with an offset; a blank may stand for the T. Seconds since 1970. */
function timestampVersion(text: string): string | undefined {
  const [, year, month, day, hour, minute, second, fraction = '', offset] =
    /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,60}))?([Zz]|[+-]\d\d:?\d\d)$/.exec(text) ?? [];
  if (year === undefined || offset === undefined) return undefined;
  const [y, m, d] = [Number(year), Number(month), Number(day)];
  const [h, min, s] = [Number(hour), Number(minute), Number(second)];
  if (m < 1 || m > 12 || d < 1 || d > daysIn(y, m) || h > 23 || min > 59 || s > 60) return undefined;
  const seconds = daysSince1970(y, m, d) * 86_400 + h * 3600 + min * 60 + s - offsetSeconds(offset);
  if (seconds >= 0) return written(false, String(seconds), fraction);
  // Before 1970 the fraction still counts upwards: −1.25 is a second and a quarter before.
  const parts = BigInt(seconds) * 10n ** BigInt(FRACTION) + BigInt(cut(fraction).padEnd(FRACTION, '0'));
  const shown = String(-parts).padStart(FRACTION + 1, '0');
  return written(true, shown.slice(0, -FRACTION), shown.slice(-FRACTION));
}

function offsetSeconds(offset: string): number {
  if (/^z$/i.test(offset)) return 0;
  const [, sign, hours, minutes] = /^([+-])(\d\d):?(\d\d)$/.exec(offset)!;
  return (sign === '-' ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
}

const isLeap = (year: number): boolean => (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
const daysIn = (year: number, month: number): number =>
  month === 2 ? (isLeap(year) ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;

/** The Gregorian calendar, counted in years that begin in March, so that the leap day is their last. */
function daysSince1970(year: number, month: number, day: number): number {
  const y = month > 2 ? year : year - 1;
  const inYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  return y * 365 + Math.floor(y / 4) - Math.floor(y / 100) + Math.floor(y / 400) + inYear - 719_468;
}

const cut = (fraction: string): string => fraction.slice(0, FRACTION);

function written(negative: boolean, before: string, after: string): string | undefined {
  const whole = before.replace(/^0+/, '');
  if (whole.length > MOST_DIGITS) return undefined;
  const fraction = cut(after).replace(/0+$/, '');
  const length = String(whole.length).padStart(2, '0');
  if (!negative || (whole === '' && fraction === '')) return `1${length}${whole}${fraction}`;
  return `0${complement(length)}${complement(whole)}${complement(fraction.padEnd(FRACTION, '0'))}`;
}

const complement = (digits: string): string => digits.replace(/\d/g, (digit) => String(9 - Number(digit)));
