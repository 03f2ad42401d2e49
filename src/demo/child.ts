/** A child process: its output by lines, its end as a value, and no way to outlive the program that started it. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Child extends AsyncDisposable {
  readonly pid: number | undefined;
  /** Everything written to stdout and stderr so far. */
  readonly lines: readonly string[];
  /** Resolves when the process has ended and its output has been read to the end. */
  readonly exited: Promise<Exit>;
  running(): boolean;
  /** The first line that matches, now or later. Rejects, with the last lines, when the process ends without one. */
  line(pattern: RegExp): Promise<string>;
  signal(name: NodeJS.Signals): void;
}

export interface ChildOptions {
  readonly cwd?: string;
  /** The whole environment; without it, that of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

// setpriv becomes the command (same pid) and asks the kernel to kill it when its parent dies in whatever way.
const guard = existsSync('/usr/bin/setpriv') ? ['/usr/bin/setpriv', '--pdeathsig', 'KILL', '--'] : [];

/** Starts `command`. A command that cannot be started ends with code null and says why in `lines`. Disposing kills it. */
export function startChild(command: string, args: readonly string[], options: ChildOptions = {}): Child {
  const [file, ...rest] = [...guard, command, ...args] as [string, ...string[]];
  // A process group of its own: Ctrl+C in a terminal reaches the program, which then stops its children in order.
  const child = spawn(file, rest, { ...options, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  const lines: string[] = [];
  const watchers = new Set<() => void>();
  let running = true;

  const tell = (): void => watchers.forEach((look) => look());
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      tell();
    });
  }
  const exited = new Promise<Exit>((resolve) => {
    const end = (code: number | null, signal: NodeJS.Signals | null): void => {
      running = false;
      resolve({ code, signal });
      tell();
    };
    child.once('close', end);
    child.once('error', (error) => {
      lines.push(error.message);
      end(null, null);
    });
  });

  return {
    pid: child.pid,
    lines,
    exited,
    running: () => running,
    line: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = lines.find((line) => pattern.test(line));
          if (found === undefined && running) return;
          watchers.delete(look);
          if (found === undefined)
            reject(new Error(`${command} ended without ${pattern}:\n${lines.slice(-20).join('\n')}`));
          else resolve(found);
        };
        watchers.add(look);
        look();
      }),
    signal: (name) => void child.kill(name),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
