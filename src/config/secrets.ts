/** Secrets and PEM files, read by reference. What goes wrong is said by setting and reference, never by value. */
import type { Findings, Path } from './complaints.ts';
import type { SecretRef } from './fields.ts';

/** Where configuration comes from; pure but for these readers. */
export interface Source {
  /** Of the configuration file. */
  readonly path: string;
  readonly text: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whole file; throws like `fs.readFileSync`. Paths that are relative start at the configuration's folder. */
  readonly readFile: (path: string) => Uint8Array;
  /** Memory limit of the container in bytes; undefined without one. */
  readonly memoryLimit?: number | undefined;
}

/** The secret's text, its one trailing newline dropped; undefined after a complaint. */
export function readSecret(ref: SecretRef, source: Source, at: Path, findings: Findings): string | undefined {
  const found = ref.file === undefined ? fromEnvironment(ref.env!, source) : fromFile(ref.file, source);
  if ('problem' in found) {
    findings.complain(at, found.problem);
    return undefined;
  }
  const text = found.text.replace(/\r?\n$/, '');
  const problem = blankProblem(text);
  if (problem !== undefined) {
    findings.complain(at, `the secret in ${nameOf(ref)} ${problem}`);
    return undefined;
  }
  if (looksEncodedTwice(text)) {
    findings.warn(at, `the secret in ${nameOf(ref)} is base64 of a readable text; was it encoded once too often?`);
  }
  return text;
}

/** A secret that is sent in a header: visible ASCII characters only. */
export function readToken(ref: SecretRef, source: Source, at: Path, findings: Findings): string | undefined {
  const token = readSecret(ref, source, at, findings);
  if (token === undefined || /^[\x21-\x7e]+$/.test(token)) return token;
  findings.complain(at, `the secret in ${nameOf(ref)} cannot be sent in a header; needs visible ASCII characters only`);
  return undefined;
}

export function nameOf(ref: SecretRef): string {
  return ref.file === undefined ? `environment variable ${ref.env}` : `file ${ref.file}`;
}

/** A PEM file's bytes; undefined after a complaint. */
export function readPem(path: string, source: Source, at: Path, findings: Findings): Buffer | undefined {
  const found = fromFile(path, source);
  if ('problem' in found) findings.complain(at, found.problem);
  else if (!found.text.includes('-----BEGIN ')) findings.complain(at, `file ${path} holds no PEM block (-----BEGIN …)`);
  else return Buffer.from(found.text);
  return undefined;
}

type Found = { readonly text: string } | { readonly problem: string };

function fromEnvironment(name: string, source: Source): Found {
  const text = Object.hasOwn(source.env, name) ? source.env[name] : undefined;
  return text === undefined ? { problem: `environment variable ${name} is not set` } : { text };
}

function fromFile(path: string, source: Source): Found {
  let bytes: Uint8Array;
  try {
    bytes = source.readFile(path);
  } catch (error) {
    return { problem: `file ${path} cannot be read (${reasonOf(error)})` };
  }
  try {
    // The byte order mark is kept, so that it is seen below.
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    return { problem: `file ${path} is not UTF-8 text` };
  }
}

/** The code of a file-system error: its message may repeat more than anyone should read. */
export function reasonOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error';
  return (
    { ENOENT: 'no such file', EACCES: 'permission denied', EISDIR: 'it is a folder', ENOTDIR: 'no such folder' }[
      code
    ] ?? code
  );
}

/** Blanks at the ends are in nobody's secret, but in many a paste: started with them, every delivery would be refused. */
function blankProblem(text: string): string | undefined {
  if (text === '') return 'is empty';
  if (text.trim() === '') return 'is blank';
  if (text.trim() !== text)
    return `${text.trimStart() === text ? 'ends' : 'starts'} with white space beyond one newline at its end; remove it`;
  return undefined;
}

function looksEncodedTwice(text: string): boolean {
  if (text.length < 8 || !/^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return false;
  return /^[\x20-\x7e]+\r?\n?$/.test(Buffer.from(text, 'base64').toString('latin1'));
}
