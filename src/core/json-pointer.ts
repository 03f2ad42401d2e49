/** RFC 6901: a path into a JSON document. */

/** Reference tokens, unescaped; none at all points to the whole document. */
export type JsonPointer = readonly string[];

/** `/data/id` → its tokens; undefined when the text is no JSON pointer. */
export function parsePointer(text: string): JsonPointer | undefined {
  if (text === '') return [];
  if (!text.startsWith('/') || /~(?![01])/.test(text)) return undefined;
  return text
    .slice(1)
    .split('/')
    .map((token) => token.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The other way round, for messages. */
export function formatPointer(pointer: JsonPointer): string {
  return pointer.map((token) => `/${token.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('') || 'the top';
}
