/** The image's settings, read from the Dockerfile, and what its files are. */
import { chmodSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from '../../build.ts';
import { root } from '../setup/tool.ts';

const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8').replaceAll('\\\n', ' ');

/** Every instruction of the last stage, in order. */
export const instructions = dockerfile
  .slice(dockerfile.lastIndexOf('\nFROM '))
  .split('\n')
  .filter((line) => /^[A-Z]/.test(line))
  .map((line) => ({ name: line.slice(0, line.indexOf(' ')), value: line.slice(line.indexOf(' ')).trim() }));

export function setting(name: string): string {
  const found = instructions.findLast((instruction) => instruction.name === name);
  if (found === undefined) throw new Error(`the Dockerfile has no ${name}`);
  return found.value;
}

export const environment = Object.fromEntries(
  [...setting('ENV').matchAll(/(\w+)=(?:"([^"]*)"|(\S+))/g)].map(([, name = '', quoted, plain]) => [
    name,
    quoted ?? plain ?? '',
  ]),
);

/** What the base image starts. */
export const command = [process.execPath, ...(JSON.parse(setting('CMD')) as string[])];

/** A folder of its own, which everybody can read, with the files of WORKDIR in `app`. */
export async function builtImage(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'hookonce-image-'));
  chmodSync(folder, 0o755);
  await build(join(folder, 'app'));
  return folder;
}
