/** How deliveries of a sender that is not known are signed, as written. */
import * as z from 'zod';
import { duration, headerName, section } from './fields.ts';

const affix = () => z.string().max(64);

export const verify = section({
  scheme: z
    .enum(['hmac-sha256', 'hmac-sha1', 'hmac-sha512', 'ed25519', 'ecdsa-p256', 'token', 'none'])
    .describe(
      'How deliveries are signed. ed25519 and ecdsa-p256: the secrets are public keys. token: the header repeats the secret, and nothing is signed. none: anybody may post.',
    ),
  key: z
    .enum(['text', 'hex', 'base64'])
    .default('text')
    .describe('How the secret of an HMAC is written: its bytes as they are, or encoded.'),
  header: headerName().optional().describe('Header that holds the signature.'),
  encoding: z.enum(['hex', 'base64']).default('hex').describe('How the signature is written.'),
  prefix: affix().default('').describe('Text before the signature, such as sha256=.'),
  separator: affix()
    .min(1)
    .optional()
    .describe('Text between several items in the header; without it the whole value is one.'),
  signed: z
    .string()
    .min(1)
    .max(256)
    .default('{body}')
    .describe('What is signed: text around {body}, {timestamp}, {id}, {method} and {url}.'),
  over: z
    .enum(['wire', 'decoded'])
    .default('wire')
    .describe(
      'Which body is signed: as it comes, or without its Content-Encoding (gzip, deflate, br; limits.body holds for it too).',
    ),
  id: headerName().optional().describe('Header of the signed message id, where signed names {id}.'),
  timestamp: section({
    header: headerName().optional().describe('Header that holds the time of signing.'),
    prefix: affix()
      .min(1)
      .optional()
      .describe('Instead of a header: text before the time among the items of the signature header, such as t=.'),
    unit: z.enum(['s', 'ms']).default('s').describe('Seconds or milliseconds since 1970.'),
    tolerance: duration('1s').prefault('5m').describe('Largest distance from now, to either side.'),
  })
    .optional()
    .describe('Time of signing, where signed names {timestamp}.'),
});

export type VerifySettings = z.output<typeof verify>;
