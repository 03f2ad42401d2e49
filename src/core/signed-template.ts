/**
 * What a signature covers, as text: `v0:{timestamp}:{body}`. The parts are only told apart by the literal
 * text between them, so an id that contains it could be cut off elsewhere and still carry a right signature
 * (`msg_x` + `1.{}` and `msg_x.1` + `{}` sign the same bytes): such ids are refused.
 */
const fieldNames = ['{body}', '{timestamp}', '{id}', '{method}', '{url}'];

/** Literal text and `{fields}` in turn, beginning and ending with (maybe empty) literal text. */
export function signedPieces(template: string): string[] {
  return template.split(/(\{[^{}]*\})/);
}

/** Whether the id contains a character that stands next to it in the template. */
export function containsDelimiter(id: string, template: string): boolean {
  const pieces = signedPieces(template);
  const at = pieces.indexOf('{id}');
  const before = pieces[at - 1]?.at(-1);
  const after = pieces[at + 1]?.at(0);
  return (before !== undefined && id.includes(before)) || (after !== undefined && id.includes(after));
}

/**
 * Why a template cannot be used with or without a timestamp and an id; undefined when it can. `{secret}` is
 * for presets alone: hashes of secret and message are what HMAC was invented to replace.
 */
export function templateProblem(
  template: string,
  has: { readonly timestamp: boolean; readonly id: boolean; readonly secret?: boolean },
): string | undefined {
  const pieces = signedPieces(template);
  const fields = pieces.filter((piece, i) => i % 2 === 1 && !(has.secret === true && piece === '{secret}'));
  const unknown = fields.find((field) => !fieldNames.includes(field));
  if (unknown !== undefined) return `${unknown} is unknown; there are ${fieldNames.join(', ')}`;
  const twice = fields.find((field, i) => fields.indexOf(field) !== i);
  if (twice !== undefined) return `${twice} is there twice`;
  if (!fields.includes('{body}')) return '{body} is missing: the signature would not cover what is delivered';
  if (fields.includes('{timestamp}') !== has.timestamp) {
    return has.timestamp
      ? '{timestamp} is missing: a timestamp that is not signed proves nothing'
      : '{timestamp} needs to know where the timestamp stands';
  }
  if (fields.includes('{id}') !== has.id) {
    return has.id
      ? '{id} is missing: an id that is not signed proves nothing'
      : '{id} needs to know in which header the id stands';
  }
  const at = pieces.indexOf('{id}');
  const touches = at > 0 && ((at > 1 && pieces[at - 1] === '') || (at < pieces.length - 2 && pieces[at + 1] === ''));
  return touches ? '{id} needs text between it and the next field, or the two run into each other' : undefined;
}
