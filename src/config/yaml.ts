/** Reads the configuration's YAML (1.2 core, with anchors and merge keys) into plain values. */
import { LineCounter, parseDocument, visit, type ErrorCode } from 'yaml';

export type Read =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly complaints: string[] };

/**
 * Complaints name line and column, in our own words: the parser's messages quote the text around the
 * fault, and that text may be a secret that somebody pasted.
 */
export function readYaml(text: string): Read {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, merge: true, logLevel: 'error' });
  const complaints = new Map<number, string>();
  const complain = (offset: number, what: string) => {
    const { line, col } = lines.linePos(offset);
    // What follows a fault on its line is mostly its consequence.
    if (!complaints.has(line)) complaints.set(line, `line ${line}, column ${col}: ${what}`);
  };
  let lost = false;
  for (const fault of [...document.errors, ...document.warnings]) {
    // Once the parser has lost the thread, every line that follows is unexpected.
    if (lost && fault.code === 'UNEXPECTED_TOKEN') continue;
    lost ||= fault.code === 'UNEXPECTED_TOKEN';
    complain(fault.pos[0], inWords[fault.code] ?? 'not valid YAML');
  }
  visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document) === undefined) complain(alias.range?.[0] ?? 0, inWords.BAD_ALIAS);
    },
  });
  if (complaints.size > 0) return { ok: false, complaints: [...complaints.values()] };
  try {
    return { ok: true, value: document.toJS({ maxAliasCount: 1000 }) };
  } catch {
    return { ok: false, complaints: ['the aliases (*name) unfold into far too much'] };
  }
}

const inWords: Partial<Record<ErrorCode, string>> & { BAD_ALIAS: string } = {
  BAD_ALIAS: 'this alias (*name) has no anchor (&name) before it',
  BAD_DQ_ESCAPE: 'unknown escape in a double-quoted text; use single quotes to take it as it is',
  BAD_INDENT: 'the indentation does not fit the lines above, or a bracket is not closed',
  BAD_SCALAR_START: 'a text that starts with this character needs quotes',
  BLOCK_AS_IMPLICIT_KEY: 'a mapping begins where a value was expected; does the line above lack quotes or indentation?',
  BLOCK_IN_FLOW: 'a block begins inside { } or [ ]',
  DUPLICATE_KEY: 'this name appears twice in the same mapping',
  MISSING_CHAR: 'a quote, bracket, colon, comma or blank is missing here',
  MULTILINE_IMPLICIT_KEY: 'a name runs over several lines; is a colon missing?',
  MULTIPLE_DOCS: 'a second document (---) begins; the configuration is one document',
  TAB_AS_INDENT: 'a tab is used for indentation; use blanks',
  TAG_RESOLVE_FAILED: 'tags (!name) are not used here',
  UNEXPECTED_TOKEN: 'unexpected text; is there a quote, bracket or indentation amiss?',
};
