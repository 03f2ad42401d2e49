/**
 * Loads modules with a guard taken out: the text of a rule is replaced while the module is read. The text must be
 * there exactly once, however it is broken into lines, so that a rule that was rewritten is not left unproven in
 * silence.
 */
import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

/** In `file` (from the top of the repository) `find` becomes `put`. */
export interface Patch {
  readonly file: string;
  readonly find: string;
  readonly put: string;
}

const root = fileURLToPath(new URL('../..', import.meta.url));

/** From now on in this thread. Modules that were loaded before stay as they are. */
export function applyPatches(patches: readonly Patch[]): void {
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      const mine = patches.filter((patch) => url === new URL(`file://${root}${patch.file}`).href);
      if (mine.length === 0) return loaded;
      return {
        ...loaded,
        source: mine.reduce((text, patch) => patched(text, patch), Buffer.from(loaded.source as Uint8Array).toString()),
      };
    },
  });
}

export function patched(text: string, { file, find, put }: Patch): string {
  const { bare, places } = withoutLayout(text);
  const rule = withoutLayout(find).bare;
  const count = bare.split(rule).length - 1;
  if (count !== 1) throw new Error(`${count} places in ${file} read: ${find}`);
  const from = bare.indexOf(rule);
  return text.slice(0, places[from]) + put + text.slice(places[from + rule.length - 1]! + 1);
}

/** The text without white space and without commas before a closing bracket, and where each character stood. */
function withoutLayout(text: string): { bare: string; places: number[] } {
  const places: number[] = [];
  let bare = '';
  for (const { 0: character, index } of text.matchAll(/,(?!\s*[)\]}])|[^\s,]/g)) {
    bare += character;
    places.push(index);
  }
  return { bare, places };
}
