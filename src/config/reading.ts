/** The configuration as it lies on the disk: what it says, and which files said so. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { Sender } from '../core/sender.ts';
import { loadConfig, type Loaded } from './load.ts';
import { reasonOf, type Source } from './secrets.ts';

export interface Reading {
  readonly loaded: Loaded;
  /** Every file that was read or missed, by its absolute path, and what was found there: a digest, or why nothing was. */
  readonly files: ReadonlyMap<string, string>;
}

/** Never throws. Paths in the file that are relative start at its folder. */
export function readConfig(
  path: string,
  around: Pick<Source, 'env' | 'memoryLimit'>,
  senders: ReadonlyMap<string, Sender>,
): Reading {
  const folder = dirname(resolve(path));
  const files = new Map<string, string>();
  const readFile = (name: string): Buffer => {
    const file = resolve(folder, name);
    const found = lookAt(file);
    files.set(file, found.seen);
    if ('bytes' in found) return found.bytes;
    throw found.error;
  };
  let text: string;
  try {
    text = readFile(resolve(path)).toString('utf8');
  } catch (error) {
    return { loaded: { ok: false, complaints: [`the file cannot be read (${reasonOf(error)})`] }, files };
  }
  return { loaded: loadConfig({ ...around, path, text, readFile }, senders), files };
}

/** Whether any of the files would be read otherwise now. */
export function hasChanged({ files }: Pick<Reading, 'files'>): boolean {
  return [...files].some(([file, seen]) => lookAt(file).seen !== seen);
}

type Found = { readonly seen: string } & ({ readonly bytes: Buffer } | { readonly error: unknown });

function lookAt(file: string): Found {
  try {
    const bytes = readFileSync(file);
    return { bytes, seen: createHash('sha256').update(bytes).digest('base64') };
  } catch (error) {
    return { error, seen: reasonOf(error) };
  }
}
