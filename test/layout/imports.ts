/**
 * Who may import whom, checked from the text of the files. The linter has the same rules; this second reading
 * notices when it has gone blind.
 */
import { posix } from 'node:path';
import { importsOf, read, sources } from './files.ts';

/** Modules with which a file would keep its own time or reach for the process. */
const TIME = /^(node:)?(timers|timers\/promises|perf_hooks)$/;
const PROCESS = /^(node:)?process$/;

/** `core`, `app.ts`, `main.ts`, the folder of an adapter, or an adapter that is one file. */
function partOf(file: string): string {
  return file.split('/')[1] ?? file;
}

/** Why `from` may not import `specifier`, or undefined when it may. */
function objection(from: string, specifier: string): string | undefined {
  const part = partOf(from);
  if (PROCESS.test(specifier) && part !== 'main.ts') return 'only main.ts touches the process';
  if (TIME.test(specifier) && part !== 'clock.ts') return 'only clock.ts knows time';
  if (!specifier.startsWith('.')) {
    return part === 'core' && specifier !== 'node:crypto' ? 'core/ imports only core/ and node:crypto' : undefined;
  }
  if (specifier === '../package.json' && (part === 'main.ts' || part === 'app.ts')) return undefined;
  const target = posix.join(posix.dirname(from), specifier);
  if (!target.startsWith('src/')) return 'src/ imports nothing outside itself';
  if (!target.endsWith('.ts')) return 'relative imports carry .ts';
  const other = partOf(target);
  if (other === part || other === 'core') return undefined;
  switch (part) {
    case 'core':
      return 'core/ imports only core/ and node:crypto';
    case 'app.ts':
      return isStarter(other) ? 'app.ts does not know who starts it' : undefined;
    case 'main.ts':
    case 'demo':
      return isStarter(other) || ['app.ts', 'clock.ts', 'config', 'operator', 'senders'].includes(other)
        ? undefined
        : 'only app.ts imports adapters';
    default:
      return 'an adapter imports core/ and its own folder only';
  }
}

function isStarter(part: string): boolean {
  return part === 'main.ts' || part === 'demo';
}

export function importComplaints(root: string): string[] {
  return sources(root, 'src').flatMap((file) =>
    importsOf(read(root, file)).flatMap((specifier) => {
      const why = objection(file, specifier);
      return why === undefined ? [] : [`${file} imports ${specifier}: ${why}`];
    }),
  );
}
