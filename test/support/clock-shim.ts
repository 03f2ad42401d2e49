/** The wall clock of one process, stepped while it runs: a library that is loaded before all others and adds an offset from a file. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, openSync, rmSync, writeFileSync, writeSync, closeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Asks the kernel itself: whatever asks the C library here may end in itself. The monotonic clocks stay as they are. */
const SOURCE = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int64_t *offset_ms;
__attribute__((constructor)) static void attach(void) {
  const char *path = getenv("CLOCK_OFFSET_FILE");
  int fd = path ? open(path, O_RDONLY) : -1;
  if (fd < 0) return;
  void *at = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  if (at != MAP_FAILED) offset_ms = at;
  close(fd);
}
static void shift(struct timespec *ts) {
  if (!offset_ms) return;
  int64_t ns = ts->tv_nsec + (*offset_ms % 1000) * 1000000;
  ts->tv_sec += *offset_ms / 1000 + ns / 1000000000 - (ns < 0);
  ts->tv_nsec = (ns % 1000000000 + 1000000000) % 1000000000;
}
int clock_gettime(clockid_t id, struct timespec *ts) {
  int failed = (int)syscall(SYS_clock_gettime, id, ts);
  if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) shift(ts);
  return failed;
}
int gettimeofday(struct timeval *tv, void *zone) {
  struct timespec ts;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &ts)) return -1;
  tv->tv_sec = ts.tv_sec;
  tv->tv_usec = ts.tv_nsec / 1000;
  return 0;
}
time_t time(time_t *at) {
  struct timespec ts;
  if (clock_gettime(CLOCK_REALTIME, &ts)) return -1;
  if (at) *at = ts.tv_sec;
  return ts.tv_sec;
}
`;

export interface ClockShim extends Disposable {
  /** For the process whose clock is to be stepped. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A command that runs Node under it. */
  readonly node: string;
  /** So far ahead of the true time from now on; negative: behind. */
  ahead(ms: number): void;
}

/** Throws where there is no C compiler (`test/setup/programs.ts`). */
export function clockShim(): ClockShim {
  const dir = mkdtempSync(join(tmpdir(), 'hookonce-clock-'));
  const [source, library, offsets, node] = ['clock.c', 'clock.so', 'offset', 'node'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
    string,
  ];
  writeFileSync(source, SOURCE);
  writeFileSync(offsets, Buffer.alloc(8));
  try {
    execFileSync('cc', ['-shared', '-fPIC', '-O1', '-o', library, source], { stdio: 'pipe' });
  } catch (error) {
    rmSync(dir, { recursive: true });
    throw error;
  }
  const own = { LD_PRELOAD: library, CLOCK_OFFSET_FILE: offsets };
  const words = Object.entries(own).map(([name, value]) => `${name}='${value}'`);
  writeFileSync(node, `#!/bin/sh\nexec env ${words.join(' ')} '${process.execPath}' "$@"\n`, { mode: 0o755 });
  return {
    env: { ...process.env, ...own },
    node,
    ahead(ms) {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(BigInt(ms));
      const file = openSync(offsets, 'r+');
      writeSync(file, bytes, 0, 8, 0);
      closeSync(file);
    },
    [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }),
  };
}
