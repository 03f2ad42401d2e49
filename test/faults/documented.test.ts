/** docs/faults.md: every fault of the suite has its row, every cell a test, and every test that is named exists. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../setup/tool.ts';
import { faults } from './faults.ts';
import { SET_UPS } from './world.ts';

const page = readFileSync(join(root, 'docs/faults.md'), 'utf8');
const listed = new Map(
  [...page.matchAll(/^- \[(\w+)\] `(.+?)`: (.+)$/gm)].map(([, mark = '', file = '', name = '']) => [
    mark,
    { file, name },
  ]),
);
const rows = [...page.matchAll(/^\| (?!-)(.+) \|$/gm)].map(([, cells = '']) => cells.split(' | '));
/** By its heading; the tables of words at the top have none. */
const matrix = rows.filter(([fault]) => fault !== 'fault' && fault !== 'what' && !/^\W/.test(fault ?? ''));

/** How a title says that there is one for each set-up. */
const PLACE = /\$\{name\}/;

/** The title as it stands in the file, set-ups filled in. */
function declares(file: string, name: string): boolean {
  const text = readFileSync(join(root, file), 'utf8');
  const titles = [...text.matchAll(/\btest\(\s*(['"`])(.*?)\1\s*,/gs)].flatMap(([, , title = '']) =>
    PLACE.test(title) ? Object.keys(SET_UPS).map((setUp) => title.replace(PLACE, setUp)) : [title],
  );
  return titles.includes(name);
}

test('every test that docs/faults.md names is there, under this name', () => {
  assert.ok(listed.size > 20);
  for (const { file, name } of listed.values()) assert.ok(declares(file, name), `${file}: ${name}`);
});

test('every cell of docs/faults.md names its tests, and every test of the list is named in one', () => {
  const used = new Set<string>();
  for (const [fault, ...cells] of matrix) {
    const marks = cells.map((cell) => [...cell.matchAll(/\[(\w+)\]/g)].map(([, mark = '']) => mark));
    for (const [at, cell] of cells.entries())
      assert.ok(['', '–'].includes(cell.trim()) || marks[at]!.length > 0, `${fault}: ${cell} has no test`);
    for (const mark of marks.flat()) {
      assert.ok(listed.has(mark), `${fault}: [${mark}] is not in the list`);
      used.add(mark);
    }
  }
  assert.deepEqual(
    [...listed.keys()].filter((mark) => !used.has(mark)),
    [],
  );
});

test('every fault of the suite has its row in docs/faults.md', () => {
  const documented = matrix.map(([fault]) => fault);
  assert.deepEqual(
    faults.map(({ name }) => name).filter((name) => !documented.includes(name)),
    [],
  );
});
