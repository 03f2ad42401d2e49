/**
 * Durations and sizes as an operator writes them: one number and one unit, without blanks. A bare
 * number is refused, because `timeout: 15` means seconds to one reader and milliseconds to the next.
 */
const durations = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const sizes = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const;

export const durationForm = 'a number with its unit: 300ms, 15s, 5m, 2h or 7d';
export const sizeForm = 'a number with its unit: 512B, 64KiB, 1MiB or 1GiB';

/** Milliseconds; undefined when the text is no duration, or no whole number of milliseconds. */
export function parseDuration(text: string): number | undefined {
  return parse(text, durations);
}

/** Bytes; undefined when the text is no size, or no whole number of bytes. */
export function parseSize(text: string): number | undefined {
  return parse(text, sizes);
}

export function formatDuration(ms: number): string {
  return format(Math.round(ms), durations);
}

export function formatSize(bytes: number): string {
  return format(Math.round(bytes), sizes);
}

function parse(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, digits, unit] = /^(\d{1,15}(?:\.\d{1,3})?)([A-Za-z]+)$/.exec(text) ?? [];
  if (digits === undefined || unit === undefined || !Object.hasOwn(units, unit)) return undefined;
  const value = Number(digits) * units[unit]!;
  return Number.isSafeInteger(value) ? value : undefined;
}

/** In the largest unit that says the value exactly: 90000 ms is 90s, not 1.5m. */
function format(value: number, units: Readonly<Record<string, number>>): string {
  const fitting = Object.entries(units).filter(([, factor]) => value !== 0 && value % factor === 0);
  const [unit, factor] = fitting.at(-1) ?? Object.entries(units)[0]!;
  return `${value / factor}${unit}`;
}
