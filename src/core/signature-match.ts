/** Whether one of the offered signatures is right for one of the keys: the algorithms. */
import { createHash, createHmac, verify, type KeyObject } from 'node:crypto';
import { decode, sameBytes, type Encoding } from './bytes.ts';
import type { Key } from './delivery.ts';
import { sharedSecrets } from './signature-items.ts';

/** `sha256`: a plain hash, with the secret among what is hashed. */
export type Algorithm = 'hmac-sha1' | 'hmac-sha256' | 'hmac-sha512' | 'sha256' | 'ed25519' | 'ecdsa-p256';

/**
 * What is signed, in pieces: a body of megabytes is hashed where it lies. The secret is among it for `sha256`
 * alone.
 */
export type Signed = (secret: Buffer | undefined) => readonly Buffer[];

/**
 * The first key that made one of the signatures. Keys of another kind are passed over: an HMAC keyed with a public
 * key proves nothing. Shared secrets are all tried, on all signatures, without stopping at the first match.
 */
export function matchingKey(
  algorithm: Algorithm,
  encoding: Encoding,
  keys: readonly Key[],
  offered: readonly string[],
  signed: Signed,
): Key | undefined {
  switch (algorithm) {
    case 'hmac-sha1':
    case 'hmac-sha256':
    case 'hmac-sha512':
    case 'sha256':
      return sharedMatch(algorithm, encoding, keys, offered, signed);
    case 'ed25519':
    case 'ecdsa-p256':
      return publicMatch(algorithm, encoding, keys, offered, signed);
  }
}

function sharedMatch(
  algorithm: Algorithm,
  encoding: Encoding,
  keys: readonly Key[],
  offered: readonly string[],
  signed: Signed,
): Buffer | undefined {
  const texts = offered.map((text) => Buffer.from(encoding === 'hex' ? text.toLowerCase() : text));
  let matching: Buffer | undefined;
  for (const secret of sharedSecrets(keys)) {
    const hash = algorithm === 'sha256' ? createHash('sha256') : createHmac(algorithm.slice('hmac-'.length), secret);
    for (const piece of signed(secret)) hash.update(piece);
    const right = Buffer.from(hash.digest(encoding));
    for (const text of texts) if (sameBytes(text, right)) matching ??= secret;
  }
  return matching;
}

function publicMatch(
  algorithm: 'ed25519' | 'ecdsa-p256',
  encoding: Encoding,
  keys: readonly Key[],
  offered: readonly string[],
  signed: Signed,
): KeyObject | undefined {
  const type = algorithm === 'ed25519' ? 'ed25519' : 'ec';
  const hash = algorithm === 'ed25519' ? undefined : 'sha256';
  const fitting = keys.filter((key): key is KeyObject => !Buffer.isBuffer(key) && key.asymmetricKeyType === type);
  const signatures = offered.flatMap((text) => decode(text, encoding) ?? []);
  if (fitting.length === 0 || signatures.length === 0) return undefined;
  const message = Buffer.concat(signed(undefined));
  return fitting.find((key) => signatures.some((signature) => verify(hash, message, key, signature)));
}
