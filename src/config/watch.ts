/**
 * Hears when files may have changed. Kubernetes changes a mounted ConfigMap or Secret by swapping the link
 * `..data` in the mount's folder, so that the file itself never changes: a watch on the file would hear the first
 * swap alone, one on its folder hears every one.
 */
import { watch, type FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';

/** `hear` may be called without a change, and for several changes once. A folder that cannot be watched is left out. */
export function watchFolders(files: Iterable<string>, hear: () => void): Disposable {
  const folders = new Map<string, Set<string>>();
  for (const file of files) {
    const folder = dirname(file);
    folders.set(folder, (folders.get(folder) ?? new Set(['..data'])).add(basename(file)));
  }
  const watchers = [...folders].flatMap(([folder, names]) => open(folder, names, hear) ?? []);
  return {
    [Symbol.dispose]() {
      for (const watcher of watchers) watcher.close();
    },
  };
}

function open(folder: string, names: ReadonlySet<string>, hear: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, { persistent: false }, (_kind, name) => {
      if (name === null || names.has(name)) hear();
    });
    return watcher.on('error', () => watcher.close());
  } catch {
    return undefined;
  }
}
