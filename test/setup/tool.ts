/** Runs the development tools of node_modules, with this very Node. */
import { spawn } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The environment for a program that is started from here. `NODE_TEST_CONTEXT` marks the child of a test runner: a
 * runner that inherits it reports nothing and ends with 0.
 */
export function environment(): NodeJS.ProcessEnv {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const path = [join(root, 'node_modules/.bin'), dirname(process.execPath), process.env['PATH'] ?? ''];
  return { ...env, PATH: path.join(delimiter) };
}

/** Resolves with the exit code (null when killed) and what was printed; rejects when the program is not there. */
export async function runTool(
  [program = '', ...args]: readonly string[],
  cwd = root,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(program, args, { cwd, env: environment(), stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  });
  const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, stdout, stderr };
}
