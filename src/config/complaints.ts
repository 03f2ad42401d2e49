/** How complaints read: `path: what was found; what is allowed`. No complaint ever shows a secret. */
import type * as z from 'zod';
import { nearest } from './nearest.ts';

export type Path = readonly PropertyKey[];

/** Everything that is wrong, collected before anything is said. */
export class Findings {
  readonly complaints: string[] = [];
  readonly warnings: string[] = [];

  /** Said once, however many checks come to the same result. */
  complain(path: Path, what: string): void {
    const line = `${inWords(path)}: ${what}`;
    if (!this.complaints.includes(line)) this.complaints.push(line);
  }
  warn(path: Path, what: string): void {
    this.warnings.push(`${inWords(path)}: ${what}`);
  }
}

/** `routes[0].secrets[1].file` */
function inWords(path: Path): string {
  const text = path
    .map((step) => {
      if (typeof step === 'number') return `[${step}]`;
      const name = String(step);
      return /^[\w-]+$/.test(name) ? `.${name}` : `[${JSON.stringify(short(name))}]`;
    })
    .join('');
  return text.replace(/^\./, '') || 'the configuration';
}

/** One complaint per fault: what zod found wrong with `raw`, in the order of the schema. */
export function complainAbout(
  issues: readonly z.core.$ZodIssue[],
  raw: unknown,
  schema: z.ZodType,
  findings: Findings,
): void {
  for (const issue of issues) {
    if (issue.code === 'unrecognized_keys') {
      const known = namesAt(schema, issue.path);
      for (const name of issue.keys) unknownName(name, issue.path, known, findings);
    } else {
      findings.complain(issue.path, `found ${describe(at(raw, issue.path), issue.path)}; needs ${issue.message}`);
    }
  }
}

/** The names that are allowed where `path` leads. */
function namesAt(schema: z.ZodType, path: Path): string[] {
  let here = unwrap(schema);
  for (const step of path) here = unwrap(typeof step === 'number' ? elementOf(here) : shapeOf(here)[String(step)]);
  return Object.keys(shapeOf(here));
}

function unknownName(name: string, parent: Path, known: readonly string[], findings: Findings): void {
  const meant = nearest(name, known);
  const hint = meant === undefined ? `known here: ${known.join(', ')}` : `did you mean ${meant}?`;
  // `{whsec_…}` is YAML for a mapping whose name is the secret.
  const shown = meant === undefined && isSecret(parent) ? [...parent, '…'] : [...parent, name];
  findings.complain(shown, `unknown name; ${hint}`);
}

/** The value as it may be shown: kind only, where it may be a secret. */
export function describe(value: unknown, path: Path): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list';
  if (typeof value === 'string') {
    if (value === '') return 'an empty text';
    return isSecret(path) || value.includes('-----BEGIN')
      ? 'a text (not shown)'
      : JSON.stringify(short(withoutCredentials(value)));
  }
  if (typeof value === 'number' || typeof value === 'boolean')
    return isSecret(path) ? `a ${typeof value} (not shown)` : String(value);
  return 'a mapping';
}

/** Where an operator may have put a secret itself instead of a reference to it. */
function isSecret(path: Path): boolean {
  return path.some((step) => step === 'secrets' || step === 'password' || step === 'token');
}

/** URLs are shown only when they hold no user, no query and nothing that could be a misread password. */
function withoutCredentials(text: string): string {
  const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(text)?.[0];
  if (scheme === undefined) return text.includes('@') ? '…' : text;
  const url = URL.parse(text);
  return url === null || text.includes('@') || url.search !== '' || url.hash !== '' ? `${scheme}…` : text;
}

function short(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function at(raw: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, step) => (value as Record<PropertyKey, unknown> | null | undefined)?.[step], raw);
}

interface Definition {
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly options?: readonly z.ZodType[];
}

/** What is inside of optional, default and the like; of several forms, the one that has names. */
function unwrap(schema: z.ZodType | undefined): Definition {
  const here = (schema?.def ?? {}) as Definition;
  const inside = here.innerType ?? here.options?.find((option) => 'shape' in option.def);
  return inside === undefined ? here : unwrap(inside);
}
const elementOf = (here: Definition) => here.element;
const shapeOf = (here: Definition) => here.shape ?? {};
