/**
 * Reads the configuration anew when its file or one of its secrets changes, for as long as it is not disposed:
 *
 *     a folder is heard ──▶ quiet for 100 ms (1 s at the latest) ──▶ read ──▶ apply
 *     every 3 s ──▶ would a file be read otherwise? ──▶ read ──▶ apply
 *
 * The folders are for speed, and the slow look for file systems that tell nothing, and for folders that were
 * themselves replaced.
 */
import type { Cancel, Clock } from '../core/ports.ts';
import type { Loaded } from './load.ts';
import { hasChanged, type Reading } from './reading.ts';
import { watchFolders } from './watch.ts';

export interface ReloadOptions {
  /** What the program runs with. */
  readonly first: Reading;
  /** Reads all of it anew. */
  read(): Reading;
  /** Takes it over, or refuses it as a whole. */
  apply(loaded: Loaded): void;
  readonly clock: Clock;
}

const QUIET_MS = 100;
/** Of a folder that never is quiet. */
const PATIENCE_MS = 1_000;
const LOOK_MS = 3_000;

export function reloadOnChange(options: ReloadOptions): Disposable {
  const { first, clock } = options;
  let reading = first;
  let heardMs: number | undefined;
  let cancelQuiet: Cancel = () => {};

  const hear = (): void => {
    heardMs ??= clock.now();
    cancelQuiet();
    cancelQuiet = clock.timer(Math.max(0, Math.min(QUIET_MS, heardMs + PATIENCE_MS - clock.now())), reload);
  };
  let folders = watchFolders(first.files.keys(), hear);

  const reload = (): void => {
    cancelQuiet();
    heardMs = undefined;
    reading = options.read();
    // Other files may count now, and a folder of the same name may be another one; the old ones listen until the new ones do.
    const before = folders;
    folders = watchFolders(reading.files.keys(), hear);
    before[Symbol.dispose]();
    options.apply(reading.loaded);
  };
  const look = (): Cancel =>
    clock.timer(LOOK_MS, () => {
      if (heardMs === undefined && hasChanged(reading)) reload();
      cancelLook = look();
    });
  let cancelLook = look();
  // What has changed while the program started.
  if (hasChanged(first)) hear();

  return {
    [Symbol.dispose]() {
      folders[Symbol.dispose]();
      cancelQuiet();
      cancelLook();
    },
  };
}
