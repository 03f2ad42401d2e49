/**
 * Reads a chart's values.yaml with what its comments say: `# -- text` documents the setting below, `# @enum a b` names
 * its allowed values, `# @free` marks a mapping of Kubernetes' own, `# @config` the gateway's configuration.
 */
import { parse } from 'yaml';

export interface Setting {
  /** `redis.auth.existingSecret` */
  readonly path: string;
  readonly value: unknown;
  /** Empty without a comment. */
  readonly doc: string;
  readonly marks: ReadonlyMap<string, string>;
}

/** In the order of the file. Comments that are not marked are for readers of the file alone. */
export function settingsOf(text: string): Setting[] {
  const values: unknown = parse(text);
  const settings: Setting[] = [];
  const parents: { indent: number; path: string }[] = [];
  let comment: string[] = [];
  for (const line of text.split('\n')) {
    const [, indent = '', hash, said = '', key] = /^( *)(?:(# ?)(.*)|(\w+):.*)$/.exec(line) ?? [];
    if (hash !== undefined) comment.push(said);
    else if (key === undefined) comment = [];
    else {
      while (parents.length > 0 && parents.at(-1)!.indent >= indent.length) parents.pop();
      const path = [parents.at(-1)?.path, key].filter(Boolean).join('.');
      parents.push({ indent: indent.length, path });
      const trailing = / # (@\w+)$/.exec(line)?.[1];
      settings.push({
        path,
        value: at(values, path),
        ...read([...comment, ...(trailing === undefined ? [] : [trailing])]),
      });
      comment = [];
    }
  }
  return settings;
}

function read(comment: readonly string[]): Pick<Setting, 'doc' | 'marks'> {
  const marks = comment.filter((line) => line.startsWith('@')).map((line) => /^@(\w+) ?(.*)$/.exec(line)!);
  const start = comment.findIndex((line) => line.startsWith('-- '));
  const doc = start === -1 ? [] : comment.slice(start).filter((line) => !line.startsWith('@'));
  return { doc: doc.join(' ').slice(3), marks: new Map(marks.map(([, name = '', rest = '']) => [name, rest])) };
}

function at(value: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((here, key) => (here as Record<string, unknown>)[key], value);
}
