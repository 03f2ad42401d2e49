/** The shape of the repository: what may lie where. Each rule is a function from a root folder to its complaints. */
import { existsSync, readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { importComplaints } from './imports.ts';
import { filesBelow, read, sources } from './files.ts';

/** All there is at the top. A new entry is a decision: most things belong into one of these folders. */
const TOP = new Set([
  ...['src', 'test', 'charts', 'k8s', 'docs', '.ci'],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'build.ts', 'knip.json', 'Dockerfile', '.dockerignore'],
  ...['README.md', 'CHANGELOG.md', 'LICENSE', '.gitignore', '.npmrc', '.oxlintrc.json', '.oxfmtrc.json'],
]);

/** All there is directly in src/; its drawing is in src/README.md. */
const SRC = new Set([
  ...['main.ts', 'app.ts', 'clock.ts', 'upstream.ts', 'keys.ts', 'worker.ts', 'undici.d.ts', 'README.md'],
  ...['config', 'core', 'demo', 'operator', 'senders', 'http', 'redis', 'queue', 'ledger', 'events', 'tracing'],
]);

/** Names that say nothing, so that anything ends up below them. */
const DRAWER = /^(utils?|types?|helpers?|common|misc|shared|lib)(\.ts)?$/;

const LONG = 200;

function topLevel(root: string): string[] {
  const ignored = read(root, '.gitignore').split('\n').filter(Boolean);
  const isIgnored = (name: string) =>
    name === '.git' ||
    ignored.some((line) => line === `${name}/` || (line.startsWith('*') && name.endsWith(line.slice(1))));
  return readdirSync(root)
    .filter((name) => !TOP.has(name) && !isIgnored(name))
    .map((name) => `${name} has no place at the top level`);
}

function sourceTree(root: string): string[] {
  const files = filesBelow(root, 'src');
  const unknown = new Set(files.map((file) => file.split('/')[1] ?? '').filter((part) => !SRC.has(part)));
  return [
    ...[...unknown].map((part) => `src/${part} is not in the drawing of src/README.md`),
    ...files
      .filter((file) => file.endsWith('.ts') && file.split('/').length > 3)
      .map((file) => `${file} lies too deep: the import rules of .oxlintrc.json speak of src/<folder>/<file>.ts`),
    ...[...files, ...filesBelow(root, 'test')]
      .filter((file) => file.split('/').some((part) => DRAWER.test(part)))
      .map((file) => `${file}: name it after what it holds`),
  ];
}

/** A long file is named in src/README.md, in a line that says why it is long. */
function longFiles(root: string): string[] {
  const lines = existsSync(`${root}/src/README.md`) ? read(root, 'src/README.md').split('\n') : [];
  const hasReason = (file: string) => {
    const name = `\`${file.slice('src/'.length)}\``;
    return lines.some((line) => line.includes(name) && line.replace(name, '').length > 20);
  };
  return sources(root, 'src')
    .filter((file) => read(root, file).trimEnd().split('\n').length > LONG && !hasReason(file))
    .map((file) => `${file} has more than ${LONG} lines and src/README.md gives no reason`);
}

/** Every file in test/ is a test, named in a script of package.json, or imported or named by one that is. */
function strayTests(root: string): string[] {
  const files = filesBelow(root, 'test').filter((file) => /\.m?ts$/.test(file) && !file.startsWith('test/fixtures/'));
  const scripts = read(root, 'package.json');
  const reached = new Set(files.filter((file) => file.endsWith('.test.ts') || scripts.includes(file)));
  for (const file of reached) {
    const quoted = [...read(root, file).matchAll(/['"`]([^'"`\s]+\.m?ts)['"`]/g)].map((match) =>
      basename(match[1] ?? ''),
    );
    for (const other of files) if (quoted.includes(basename(other))) reached.add(other);
  }
  return files
    .filter((file) => !reached.has(file))
    .map((file) => `${file} is reached by no test run: is it named *.test.ts?`);
}

/** A rule that is switched off somewhere says why. */
function silentExceptions(root: string): string[] {
  return [...sources(root, 'src'), ...sources(root, 'test')].flatMap((file) =>
    read(root, file)
      .split('\n')
      .filter((line) => /\/[/*]\s*(ox|es)lint-disable/.test(line) && !/-disable.*-- \S/.test(line))
      .map((line) => `${file}: no reason after "--" in: ${line.trim()}`),
  );
}

/** Found in the text, because the linter cannot tell the whole import from the named one. */
function namedZod(root: string): string[] {
  return sources(root, 'src')
    .filter((file) => /^import (?!\*|type ).*from 'zod'/m.test(read(root, file)))
    .map((file) => `${file}: import * as z from 'zod': named imports keep 15 MB more in memory`);
}

export const RULES: Readonly<Record<string, (root: string) => string[]>> = {
  'the top level holds only what belongs there': topLevel,
  'src/ is as drawn': sourceTree,
  'the import rules hold': importComplaints,
  'files past 200 lines have a reason': longFiles,
  'every test file is run': strayTests,
  'every lint exception has a reason': silentExceptions,
  'zod is imported whole': namedZod,
};
