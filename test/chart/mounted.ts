/** Files as a kubelet lays them out in a mounted ConfigMap or Secret, and the pieces of a rendered release as processes. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { startChild, type Child } from '../../src/demo/child.ts';

type Files = Readonly<Record<string, string>>;

let generation = 0;

/** Called again, it changes the files as the kubelet does. `name → ..data/name`, and `..data` a link to a folder that is exchanged as a whole (kubernetes/pkg/volume/util/atomic_writer.go). */
export function mount(path: string, files: Files): void {
  const data = `..2026_11_30_00_00_00.${(generation += 1)}`;
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, data, name)), { recursive: true });
    writeFileSync(join(path, data, name), text);
  }
  symlinkSync(data, join(path, '..data_tmp'));
  renameSync(join(path, '..data_tmp'), join(path, '..data'));
  for (const name of Object.keys(files)) {
    if (!existsSync(join(path, name))) symlinkSync(join('..data', name), join(path, name));
  }
}

/** A folder in which a pod's absolute paths lie: `at(text)` is the text with them led there. */
export function podRoot(): Disposable & { readonly path: string; at(text: string): string } {
  const path = mkdtempSync(join(tmpdir(), 'hookonce-pod-'));
  return {
    path,
    at: (text) => text.replaceAll(/(?<![\w.:/])\/(etc|data|run)\b/g, `${path}/$1`),
    [Symbol.dispose]: () => rmSync(path, { recursive: true }),
  };
}

/** Runs a command to its end. */
export async function finished(
  command: string,
  args: readonly string[],
  env: Files = {},
): Promise<{ code: number | null; lines: readonly string[] }> {
  await using child: Child = startChild(command, args, { env: { ...process.env, ...env } });
  const { code } = await child.exited;
  return { code, lines: child.lines };
}
