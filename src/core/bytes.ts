/** Bytes written as text, and compared without telling how far they agree. */
import { timingSafeEqual } from 'node:crypto';

export type Encoding = 'hex' | 'base64';

/** Digits of either case; undefined for anything but whole bytes in hex. */
export function fromHex(text: string): Buffer | undefined {
  return /^([0-9a-f]{2})*$/i.test(text) ? Buffer.from(text, 'hex') : undefined;
}

/** The padded standard alphabet only. `Buffer.from` skips what it does not know, so the bytes must come out as the same text. */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

export const decode = (text: string, encoding: Encoding): Buffer | undefined =>
  encoding === 'hex' ? fromHex(text) : fromBase64(text);

/** In constant time. A length that differs is a mismatch like any other; it is no secret. */
export const sameBytes = (a: Buffer, b: Buffer): boolean => a.length === b.length && timingSafeEqual(a, b);

/** Text of a body that must be UTF-8, a byte order mark dropped; undefined when it is something else. */
export function utf8Text(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
