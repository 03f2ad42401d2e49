/** Keys are digests of their parts. */
import { createHash } from 'node:crypto';

/** 128 bits, base64url. Every value with its length before it: they cannot run into each other. */
export function digest(parts: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const bytes of parts) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    hash.update(length).update(bytes);
  }
  return hash.digest().subarray(0, 16).toString('base64url');
}

export const utf8 = (value: string): Buffer => Buffer.from(value, 'utf8');
