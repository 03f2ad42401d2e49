/** The command line in a pod of a cluster's service, beside the gateways that run. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { startChild } from '../../src/demo/child.ts';
import { secretFiles } from './config.ts';
import { program } from './program.ts';

export interface CommandLine extends AsyncDisposable {
  (...args: string[]): Promise<{ code: number | null; text: string }>;
}

export async function commandLine(config: Readonly<Record<string, unknown>>): Promise<CommandLine> {
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-command-'));
  for (const [name, text] of Object.entries({ ...secretFiles, 'config.yaml': stringify(config) }))
    await writeFile(join(dir, name), text);
  const run = async (...args: string[]) => {
    await using child = startChild(program.node, [program.entry, ...args, '--config', join(dir, 'config.yaml')]);
    return { code: (await child.exited).code, text: child.lines.join('\n') };
  };
  return Object.assign(run, { [Symbol.asyncDispose]: async () => await rm(dir, { recursive: true }) });
}
