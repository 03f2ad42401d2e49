/** docs/guarantees.md: each cell of its table names tests, and they are there. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { until } from '../../src/demo/until.ts';
import { systemClock } from '../../src/clock.ts';
import { root } from '../setup/tool.ts';
import { startCluster } from '../support/cluster.ts';
import { github, outcome } from '../support/deliveries.ts';

const page = readFileSync(join(root, 'docs/guarantees.md'), 'utf8');

interface Named {
  readonly number: string;
  readonly title: string;
  readonly file: string;
}

const named: Named[] = [...page.matchAll(/^- \*\*(\d+)\*\* “(.+)” \(`(.+)`\)$/gm)].map(([, number, title, file]) => ({
  ...{ number: number!, title: title!, file: file! },
}));

/** Titles of the tests in a file, as patterns: what is filled in may be anything. */
function titles(file: string): RegExp[] {
  const code = readFileSync(join(root, file), 'utf8');
  const written = [...code.matchAll(/(?:test\(|title =)\s*(['"`])(.*?[^\\])\1/gs)].map(([, , text]) => text!);
  return written.map((text) => {
    const parts = text.split(/\$\{[^}]*\}/).map((part) => RegExp.escape(part.replaceAll("\\'", "'")));
    return new RegExp(`^${parts.join('.+')}$`);
  });
}

test('each cell names tests, and each of them is in the list below', () => {
  const rows = page.split('\n').filter((line) => line.startsWith('| ') && !line.startsWith('| ---'));
  const [head, ...faults] = rows.map((row) => row.split('|').slice(1, -1));
  assert.equal(head!.length, 5);
  assert.ok(faults.length >= 12);
  const known = new Set(named.map(({ number }) => number));
  for (const [fault, ...cells] of faults)
    for (const cell of cells) {
      if (cell.trim() === '–') continue;
      const numbers = [...cell.matchAll(/\[(\d+)\]/g)].map(([, number]) => number!);
      assert.ok(numbers.length > 0, `${fault}:${cell}`);
      for (const number of numbers) assert.ok(known.has(number), `[${number}]`);
    }
});

test('each test in the list exists', () => {
  assert.ok(named.length >= 25);
  for (const { title, file } of named)
    assert.ok(
      titles(file).some((pattern) => pattern.test(title)),
      `${file}: ${title}`,
    );
});

test('each test in the list is named in the text', () => {
  for (const { number } of named) assert.ok(page.includes(`[${number}]`), number);
});

test('one Redis that is down: 503 until it is back, and then as before', async () => {
  await using cluster = await startCluster({ nodes: 1, redis: { appendonly: 'always' } });
  const [node] = cluster.nodes;
  const deliver = async (id: string, n: number) => await cluster.post(n, '/github', github(id));
  assert.equal((await deliver('before', 0)).status, 200);
  await node!.kill();
  const refused = await deliver('during', 1);
  assert.deepEqual([refused.status, outcome(refused)], [503, 'unavailable']);
  assert.equal(cluster.application.of('during').length, 0);
  await node!.start();
  await until(
    systemClock,
    'the event to be taken',
    async () => ((await deliver('during', 1)).status === 200 ? true : undefined),
    60_000,
  );
  assert.equal(outcome(await deliver('before', 1)), 'duplicate');
  for (const id of ['before', 'during']) assert.equal(cluster.application.of(id).length, 1);
});
