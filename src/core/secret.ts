/**
 * From a configured secret, its trailing newline dropped, to a key. A string is the problem with it, in words
 * that go after "the secret in …" and never repeat it.
 */
import { createPublicKey, type KeyObject } from 'node:crypto';
import { fromBase64, fromHex } from './bytes.ts';

/** The key is the text's UTF-8 bytes, as most senders mean it. */
export function textSecret(text: string): Buffer | string {
  return text.trim() === '' ? 'is blank' : Buffer.from(text, 'utf8');
}

export function hexSecret(text: string): Buffer | string {
  const bytes = fromHex(text);
  return bytes === undefined || bytes.length === 0 ? 'is not a key in hexadecimal digits' : bytes;
}

export function base64Secret(text: string): Buffer | string {
  const bytes = fromBase64(text);
  return bytes === undefined || bytes.length === 0 ? 'is not base64' : bytes;
}

/** An Ed25519 public key: its 32 bytes in hex or base64, or SPKI in base64 or PEM. */
export function ed25519Secret(text: string): KeyObject | string {
  const raw = [fromHex(text), fromBase64(text)].find((bytes) => bytes?.length === 32);
  const key =
    raw === undefined
      ? spki(text)
      : createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: raw.toString('base64url') }, format: 'jwk' });
  return key?.asymmetricKeyType === 'ed25519' ? key : 'is not an Ed25519 public key';
}

/** A public key on the curve P-256: SPKI in base64 or PEM. */
export function p256Secret(text: string): KeyObject | string {
  const key = spki(text);
  return key?.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : 'is not a public key on the curve P-256';
}

/** Undefined for a private key too: the gateway has no use for one, and should not be given it. */
function spki(text: string): KeyObject | undefined {
  const pem = text.startsWith('-----BEGIN PUBLIC KEY-----');
  const der = fromBase64(text);
  if (!pem && der === undefined) return undefined;
  try {
    return createPublicKey(pem ? text : { key: der!, format: 'der', type: 'spki' });
  } catch {
    return undefined;
  }
}
