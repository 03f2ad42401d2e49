/**
 * A command as a container runs it: process 1 of its own namespace, on a read-only file system, without privileges,
 * under a memory limit. It has no network of its own.
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { systemClock } from '../../src/clock.ts';
import { startChild, type Child } from '../../src/demo/child.ts';
import { until } from '../../src/demo/until.ts';

export interface Confined extends AsyncDisposable {
  readonly child: Child;
  /** Process 1 of its namespace, as seen from here. */
  pid(): number;
  /** Most memory that it has had so far, in bytes: what the kernel holds against the limit. */
  peak(): number;
}

/** Version 1 and 2 of the kernel's control groups. */
const groups = existsSync('/sys/fs/cgroup/memory/memory.limit_in_bytes')
  ? { folder: '/sys/fs/cgroup/memory', limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes' }
  : { folder: '/sys/fs/cgroup', limit: 'memory.max', peak: 'memory.peak' };

// The mount namespace that hides other processes is also where the file system is made read-only.
const enter = `echo $$ > "$GROUP/cgroup.procs"
exec unshare --pid --fork --mount-proc --kill-child sh -c 'mount -o remount,ro,bind / && exec setpriv --reuid=65532 \
--regid=65532 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"' sh "$@"`;

let count = 0;

/** Throws a sentence where the machine does not allow it. `env` is the whole environment. */
export function confined(
  command: readonly string[],
  memoryBytes: number,
  options: { cwd: string; env: Record<string, string> },
): Confined {
  const group = `${groups.folder}/hookonce-test-${process.pid}-${(count += 1)}`;
  try {
    mkdirSync(group);
    writeFileSync(`${group}/${groups.limit}`, String(memoryBytes));
  } catch (cause) {
    throw new Error('The test of the image needs to be root, and memory control groups that it may write.', { cause });
  }
  const env = { PATH: process.env['PATH'] ?? '', ...options.env, GROUP: group };
  const child = startChild('sh', ['-c', enter, 'sh', ...command], { cwd: options.cwd, env });
  const pid = (): number =>
    Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim() || child.pid);
  return {
    child,
    pid,
    peak: () => Number(readFileSync(`${group}/${groups.peak}`, 'utf8')),
    async [Symbol.asyncDispose]() {
      // Having changed its user, it no longer ends with the process that started it.
      if (child.running()) process.kill(pid(), 'SIGKILL');
      await child[Symbol.asyncDispose]();
      // The kernel takes a moment to count out the last process.
      await until(systemClock, 'an empty control group', () => {
        rmdirSync(group);
        return true;
      });
    },
  };
}
