/** The repository's files, as the layout rules read them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Every file below `root/folder`, as a path from `root` with forward slashes; none when there is no such folder. */
export function filesBelow(root: string, folder: string): string[] {
  try {
    return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? filesBelow(root, `${folder}/${entry.name}`) : [`${folder}/${entry.name}`],
    );
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
}

export function sources(root: string, folder: string): string[] {
  return filesBelow(root, folder).filter((file) => file.endsWith('.ts'));
}

export function read(root: string, file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

/**
 * What a source file imports: static, dynamic and re-exporting, types included. Read line by line from the text,
 * so that these rules share nothing with the linter. `import.meta` is not an import.
 */
export function importsOf(source: string): string[] {
  const statement = /^\s*(?:import|export|\}).*?\bfrom\s*['"]([^'"]+)['"]|^\s*import\s*['"]([^'"]+)['"]/gm;
  const call = /\b(?:import|require)\(\s*['"`]([^'"`]+)['"`]/g;
  return [...source.matchAll(statement), ...source.matchAll(call)].map((match) => match[1] ?? match[2] ?? '');
}
