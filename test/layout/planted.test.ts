/**
 * Guards that have gone blind pass everything. So faults.txt is planted, file by file, in a tree laid out like this
 * repository, and every guard of `npm run check` must find what is there for it to find.
 */
import assert from 'node:assert/strict';
import { copyFile, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { root, runTool } from '../setup/tool.ts';
import { RULES } from './rules.ts';

/** One file of faults.txt. `finds`: `tool: words` that must be reported about it, in this order, split by ` .. `. */
interface Planted {
  readonly file: string;
  readonly finds: readonly string[];
  readonly source: string;
}

interface Named {
  readonly name: string;
}

/** Line by line `tool: file: what it said`. */
let reports: string[] = [];
let tree = '';

const planted = parse(await readFile(new URL('faults.txt', import.meta.url), 'utf8'));
planted.push({ file: 'src/redis/long.ts', finds: ['layout: more than 200 lines'], source: 'export {};\n'.repeat(201) });

before(async () => {
  tree = await mkdtemp(join(tmpdir(), 'hookonce-planted-'));
  for (const config of [
    '.oxlintrc.json',
    '.oxfmtrc.json',
    'knip.json',
    'tsconfig.json',
    'package.json',
    '.gitignore',
  ]) {
    await copyFile(join(root, config), join(tree, config));
  }
  await symlink(join(root, 'node_modules'), join(tree, 'node_modules'));
  for (const { file, source } of planted) {
    await mkdir(dirname(join(tree, file)), { recursive: true });
    await writeFile(join(tree, file), source);
  }
  reports = [...layout(), ...(await Promise.all([lint(), types(), format(), deadCode()])).flat()];
});

after(async () => {
  await rm(tree, { recursive: true, force: true });
});

for (const { file, finds } of planted) {
  for (const find of finds) {
    test(`${file}: ${find}`, () => {
      const [tool = '', ...words] = find.split(/: | \.\. /);
      const about = reports.filter((report) => report.startsWith(`${tool}: ${file}`));
      const found = about.some((report) => words.every((word) => report.includes(word)));
      assert.ok(found, `not found; reported about ${file}: ${JSON.stringify(about, undefined, 2)}`);
    });
  }
}

for (const { file } of planted.filter(({ finds }) => finds.length === 0)) {
  test(`${file}: sound, and nothing is found`, () => {
    const about = reports.filter((report) => report.includes(`: ${file}`) && !report.startsWith('knip'));
    assert.deepEqual(about, []);
  });
}

function parse(text: string): Planted[] {
  return text
    .split(/^== /m)
    .slice(1)
    .map((block) => {
      const [file = '', ...lines] = block.split('\n');
      const finds = lines.filter((line) => line.startsWith('>> ')).map((line) => line.slice(3));
      return { file, finds, source: lines.slice(finds.length).join('\n') };
    });
}

async function lint(): Promise<string[]> {
  const { stdout, stderr } = await runTool(['oxlint', '--format=json', 'src', 'test'], tree);
  assert.equal(stderr, '');
  return JSON.parse(stdout).diagnostics.map(
    (found: { filename: string; code?: string; message: string; help?: string }) =>
      `oxlint: ${found.filename}: ${found.code} ${found.message} ${found.help}`,
  );
}

async function types(): Promise<string[]> {
  const { stdout } = await runTool(['tsc', '-p', '.', '--pretty', 'false'], tree);
  return stdout.split('\n').map((line) => `tsc: ${line}`);
}

async function format(): Promise<string[]> {
  const { stdout } = await runTool(['oxfmt', '--list-different'], tree);
  return stdout.split('\n').map((line) => `oxfmt: ${line}: differs`);
}

/** One entry a file, and in it, for each kind of complaint, the names complained of. */
async function deadCode(): Promise<string[]> {
  const { stdout } = await runTool(['knip', '--reporter', 'json'], tree);
  const { issues }: { issues: { file: string; files: Named[]; exports: Named[] }[] } = JSON.parse(stdout);
  return issues.flatMap(({ file, files, exports }) => [
    ...files.map(({ name }) => `knip: ${file}: unused file ${name}`),
    ...exports.map(({ name }) => `knip: ${file}: unused export ${name}`),
  ]);
}

function layout(): string[] {
  return Object.values(RULES)
    .flatMap((rule) => rule(tree))
    .map((complaint) => `layout: ${complaint}`);
}
