/** Senders that sign nothing, and only repeat a secret: who has seen one delivery can forge any other. */
import { sameBytes } from './bytes.ts';
import type { Received } from './delivery.ts';
import type { JsonPointer } from './json-pointer.ts';
import { jsonLookup } from './json-value.ts';
import { onlyLine, rejected, sharedSecrets, type Checked, type Circumstances } from './signature-items.ts';

export interface TokenRule {
  readonly scheme: 'token';
  /** A header, or a string in every element of a list in the JSON body. */
  readonly from: { readonly header: string } | { readonly list: JsonPointer; readonly each: JsonPointer };
}

/** Every token there is must be one and the same of the secrets. */
export function checkToken({ from }: TokenRule, received: Received, { secrets }: Circumstances): Checked {
  let tokens: (Buffer | undefined)[];
  if ('header' in from) {
    const line = onlyLine(received.headers, from.header);
    if (typeof line !== 'string') return line;
    tokens = [Buffer.from(line, 'latin1')];
  } else {
    const body = jsonLookup(received.body);
    tokens = Array.from({ length: body.length(from.list) ?? 0 }, (_, i) => {
      const value = body.value([...from.list, String(i), ...from.each]);
      return value?.kind === 'string' ? Buffer.from(value.text) : undefined;
    });
  }
  if (tokens.length === 0 || tokens.includes(undefined)) return rejected('missing_signature', 'the token is missing');
  let key: Buffer | undefined;
  for (const secret of sharedSecrets(secrets)) {
    const same = tokens.map((token) => sameBytes(token!, secret));
    if (!same.includes(false)) key ??= secret;
  }
  return key ? { kind: 'matched', key } : rejected('bad_signature', 'the token does not match');
}
