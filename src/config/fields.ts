/** The kinds of value that settings have. Each error message completes the sentence "needs …". */
import { isIP } from 'node:net';
import * as z from 'zod';
import { durationForm, formatDuration, formatSize, parseDuration, parseSize, sizeForm } from './units.ts';

/** A mapping that takes no names but its own. */
export const section = z.strictObject;

/** Timers cannot be set for longer than 2^31 − 1 ms; this is the last whole day before that. */
const longestTimer = '24d';

/** Milliseconds, written with a unit. `min` and `max` are inclusive. */
export function duration(min: string, max = longestTimer) {
  return quantity({ form: durationForm, ...writtenDuration }, parseDuration, formatDuration, min, max);
}

/** A duration, or `off`. */
export function durationOrOff(min: string, max = longestTimer) {
  const written = duration(min, max);
  const told = { pattern: `${writtenDuration.pattern}|^off$`, examples: ['off', '7d'] };
  return z
    .string({ error: `${durationForm}, or off` })
    .meta(told)
    .transform((text, context) => {
      if (text === 'off') return text;
      const parsed = written.safeParse(text);
      if (parsed.success) return parsed.data;
      for (const { message } of parsed.error.issues)
        context.addIssue({ code: 'custom', message: `${message}, or off` });
      return z.NEVER;
    });
}

/** Bytes, written with a unit. `min` and `max` are inclusive. */
export function size(min: string, max: string) {
  return quantity({ form: sizeForm, ...writtenSize }, parseSize, formatSize, min, max);
}

/** What editors check while one writes; how large a value may be is said by the parser. */
const writtenDuration = { pattern: String.raw`^\d{1,15}(\.\d{1,3})?(ms|s|m|h|d)$`, examples: ['300ms', '15s', '7d'] };
const writtenSize = { pattern: String.raw`^\d{1,15}(\.\d{1,3})?(B|KiB|MiB|GiB)$`, examples: ['64KiB', '1MiB'] };

function quantity(
  { form, ...written }: { readonly form: string; readonly pattern: string; readonly examples: string[] },
  parse: (text: string) => number | undefined,
  format: (value: number) => string,
  min: string,
  max: string,
) {
  const [least, most] = [parse(min)!, parse(max)!];
  const told = z.string({ error: form }).meta(written);
  return told.transform((text, context) => {
    const value = parse(text);
    const problem =
      value === undefined
        ? form
        : value < least
          ? `at least ${format(least)}`
          : value > most
            ? `at most ${format(most)}`
            : undefined;
    if (problem === undefined) return value!;
    context.addIssue({ code: 'custom', message: problem });
    return z.NEVER;
  });
}

export function count(min: number, max: number) {
  const error = `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
}

export function matching(pattern: RegExp, form: string) {
  return z.string({ error: `${form} (a text; numbers need quotes)` }).regex(pattern, { error: form });
}

const networkForm = 'an address or network, such as 10.0.0.0/8 or fd00::/8';

/** An IP address, or a network in CIDR form. */
export const network = () => z.string({ error: networkForm }).refine(isNetwork, { error: networkForm });

function isNetwork(text: string): boolean {
  const [, address = '', prefix = '0'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const bits = { 0: -1, 4: 32, 6: 128 }[isIP(address)]!;
  return Number(prefix) <= bits;
}

export const headerName = () =>
  matching(/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, 'the name of a header, such as x-event-id');

/** An absolute path, or one relative to the configuration's folder; the leading slash or dot keeps a pasted value from passing as a path. */
export const filePath = () => matching(/^\.{0,2}\/[^\0\n]*$/, 'a path that starts with / or ./');

const reference = 'a reference, {file: /path/to/secret} or {env: NAME}; a secret is never written here itself';

/** Where a secret is found. */
export const secretRef = () =>
  section(
    {
      file: filePath()
        .optional()
        .describe('File that holds the secret, such as a key of a mounted Secret. One newline at its end is dropped.'),
      env: matching(/^[A-Za-z_][A-Za-z0-9_]*$/, 'the name of an environment variable')
        .optional()
        .describe('Environment variable that holds the secret.'),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? reference : undefined) },
  )
    .superRefine((ref, context) => {
      if ((ref.file === undefined) === (ref.env === undefined))
        context.addIssue({ code: 'custom', message: `exactly one of file and env` });
    })
    .meta({
      ...oneOf('file', 'env'),
      examples: [{ file: '/etc/hookonce/secrets/stripe' }, { env: 'STRIPE_SECRET' }],
    });

/** For editors: exactly one of these names is there. */
export function oneOf(...names: string[]) {
  return { oneOf: names.map((name) => ({ required: [name] })) };
}

export type SecretRef = z.output<ReturnType<typeof secretRef>>;

/** What is allowed, for faults that no field words itself. */
export function allowed(issue: z.core.$ZodRawIssue): string {
  if (issue.code === 'invalid_type') return kinds[issue.expected] ?? `a value of type ${issue.expected}`;
  if (issue.code === 'invalid_value') return `one of ${issue.values.join(', ')}`;
  if (issue.code === 'too_small') return `at least ${issue.minimum} ${countable(issue.origin, issue.minimum)}`;
  if (issue.code === 'too_big') return `at most ${issue.maximum} ${countable(issue.origin, issue.maximum)}`;
  return 'another value';
}

const kinds: Readonly<Record<string, string>> = {
  object: 'a mapping',
  array: 'a list',
  string: 'a text (numbers need quotes)',
  boolean: 'true or false',
};
const countable = (origin: string, number: number | bigint) =>
  number === 1 ? (origin === 'string' ? 'character' : 'entry') : origin === 'string' ? 'characters' : 'entries';
