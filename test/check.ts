/** `npm run check`: all that can be said about the code without running it. One line a step, and what a failed step said. */
import { runTool } from './setup/tool.ts';

const STEPS: Readonly<Record<string, readonly string[]>> = {
  types: ['tsc', '-p', '.'],
  lint: ['oxlint', 'src', 'test', 'build.ts'],
  format: ['oxfmt', '--check'],
  'dead code': ['knip'],
  layout: ['node', '--test', '--test-timeout=60000', 'test/layout/*.test.ts'],
};

const results = Object.entries(STEPS).map(async ([name, command]) => {
  const begin = performance.now();
  const { code, stdout, stderr } = await runTool(command);
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  return { line: `${code === 0 ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`, ok: code === 0, said: stdout + stderr };
});

let ok = true;
for (const pending of results) {
  const result = await pending;
  console.log(result.line);
  if (result.ok) continue;
  ok = false;
  console.log(result.said);
}
process.exitCode = ok ? 0 : 1;
