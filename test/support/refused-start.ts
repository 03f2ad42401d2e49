import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { startChild, type Exit } from '../../src/demo/child.ts';
import { gatewayConfig, secretFiles, type Settings } from './config.ts';
import { program } from './program.ts';

/** Starts a gateway that is to refuse its configuration; resolves when it has ended. No Redis is needed for that. */
export async function refusedStart(settings: Settings): Promise<{ exit: Exit; output: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-refused-'));
  try {
    const config = gatewayConfig('http://127.0.0.1:9', ['redis://127.0.0.1:9'], settings);
    for (const [name, text] of Object.entries({ ...secretFiles, 'config.yaml': stringify(config) })) {
      await writeFile(join(dir, name), text);
    }
    await using child = startChild(program.node, [program.entry, 'serve', '--config', 'config.yaml'], { cwd: dir });
    return { exit: await child.exited, output: child.lines.join('\n') };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
