/** The programs that the tests start and that npm does not bring. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { postgresDirectory } from './postgres-directory.ts';

/** Program and the Debian packages that it takes. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  'redis-server': ['redis-server'],
  promtool: ['prometheus'],
  chromium: ['chromium'],
  initdb: ['postgresql'],
  cc: ['gcc', 'libc6-dev'],
};

/** Programs that Debian keeps apart from the path. */
const ASIDE: Readonly<Record<string, () => string | undefined>> = { initdb: postgresDirectory };

/** Installs what is missing, as root on Debian. Resolves with what to tell the user when something still is. */
export async function providePrograms(): Promise<string | undefined> {
  const packages = missing();
  if (packages.length === 0) return undefined;
  if (process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')) await install(packages);
  const left = missing();
  if (left.length === 0) return undefined;
  return `The tests need ${left.join(', ')}. On Debian or Ubuntu: sudo apt-get install ${left.join(' ')}`;
}

function missing(): string[] {
  return Object.entries(NEEDED)
    .filter(([program]) => !isThere(program))
    .flatMap(([, names]) => names);
}

function isThere(program: string): boolean {
  const directory = ASIDE[program];
  return directory ? directory() !== undefined : spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0;
}

/** Three tries, because mirrors fail now and then. */
async function install(packages: readonly string[]): Promise<void> {
  for (const pauseMs of [0, 5_000, 20_000]) {
    await sleep(pauseMs);
    console.log(`installing ${packages.join(', ')}`);
    if (!run('apt-get', 'update') || !run('apt-get', 'install', '--yes', '--no-install-recommends', ...packages))
      continue;
    // A package may start its service when it is installed. The tests start their own, on free ports.
    for (const service of packages) spawnSync('service', [service, 'stop'], { stdio: 'ignore' });
    return;
  }
}

/** Whether it ended well; otherwise prints what it said. */
function run(program: string, ...args: string[]): boolean {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const { status, stdout, stderr } = spawnSync(program, args, { env, encoding: 'utf8' });
  if (status !== 0) console.error(`${program} ${args.join(' ')}\n${stdout}${stderr}`);
  return status === 0;
}
