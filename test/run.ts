/**
 * `npm test`: provides what the tests need, checks the code, and runs every test. With arguments it runs only those
 * tests: `npm test -- test/unit`, `npm test -- --test-name-pattern=B36`. `npm run test:full` adds the long suites.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { providePrograms } from './setup/programs.ts';
import { environment, root } from './setup/tool.ts';

const full = process.env['HOOKONCE_TEST_FULL'] === '1';
const given = process.argv.slice(2);
const flags = given.filter((argument) => argument.startsWith('-'));
const paths = given.filter((argument) => !argument.startsWith('-'));

const complaint = await providePrograms();
if (complaint !== undefined) {
  console.error(complaint);
  process.exit(2);
}

const checked = given.length > 0 || (await run(['test/check.ts']));
const tested = await run([
  '--test',
  `--test-timeout=${full ? 900_000 : 120_000}`,
  '--test-concurrency=2',
  '--test-reporter=spec',
  '--test-reporter-destination=stdout',
  '--test-reporter=./test/setup/tally.ts',
  '--test-reporter-destination=stderr',
  ...flags,
  ...(paths.length > 0 ? paths : ['test']).map(asPattern),
]);
if (!checked) console.error('FAIL npm run check (above)');
process.exitCode = checked && tested ? 0 : 1;

/** A folder stands for the tests in it. */
function asPattern(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true ? `${path}/**/*.test.ts` : path;
}

async function run(args: readonly string[]): Promise<boolean> {
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: environment(),
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const [code] = await once(child, 'close');
  return code === 0;
}
