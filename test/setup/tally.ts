/**
 * A reporter that makes the run fail when it tested nothing: `node --test` ends with 0 when no file matches, when no
 * test in a file matches the name pattern, and for a file without a test (which it counts as one that passed).
 */
import { resolve } from 'node:path';
import type { TestEvent } from 'node:test/reporters';

export default async function* tally(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const filtered = process.execArgv.some((argument) => argument.startsWith('--test-name-pattern'));
  let ran = 0;
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    if (data.details.type === 'suite' || data.skip !== undefined) continue;
    const isFile = data.nesting === 0 && data.file !== undefined && resolve(data.name) === data.file;
    if (!isFile) ran += 1;
    if (!isFile || filtered || type === 'test:fail') continue;
    process.exitCode = 1;
    yield `FAIL ${data.name} holds no test\n`;
  }
  if (ran > 0) return;
  process.exitCode = 1;
  yield 'FAIL no test was run\n';
}
