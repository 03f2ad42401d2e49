/** A route's own `verify`, compiled to the rule that the core checks. */
import type { Key } from '../core/delivery.ts';
import { base64Secret, ed25519Secret, hexSecret, p256Secret, textSecret } from '../core/secret.ts';
import type { TimestampRule } from '../core/signature-timestamp.ts';
import { templateProblem } from '../core/signed-template.ts';
import type { SignatureRule } from '../core/verify.ts';
import type { Findings, Path } from './complaints.ts';
import type { VerifySettings } from './schema-verify.ts';

/** What turns the route's secrets into keys. */
export function secretDecoder({ scheme, key }: VerifySettings): (text: string) => Key | string {
  switch (scheme) {
    case 'ed25519':
      return ed25519Secret;
    case 'ecdsa-p256':
      return p256Secret;
    case 'hmac-sha1':
    case 'hmac-sha256':
    case 'hmac-sha512':
      return { text: textSecret, hex: hexSecret, base64: base64Secret }[key];
    case 'token':
    case 'none':
      return textSecret;
  }
}

/** Undefined after a complaint. */
export function signatureRule(written: VerifySettings, at: Path, findings: Findings): SignatureRule | undefined {
  if (written.scheme === 'none') {
    if (
      written.header === undefined &&
      written.timestamp === undefined &&
      written.id === undefined &&
      written.over === 'wire'
    )
      return { scheme: 'none' };
    findings.complain([...at, 'scheme'], 'found none beside settings of a signature; needs hmac-sha256, or none alone');
    return undefined;
  }
  if (written.key !== 'text' && !written.scheme.startsWith('hmac-'))
    findings.complain(
      [...at, 'key'],
      `found ${written.key}, but ${written.scheme} takes its secrets as they are; needs an HMAC, or no key`,
    );
  if (written.header === undefined) {
    findings.complain([...at, 'header'], 'found nothing; needs the header that holds the signature');
    return undefined;
  }
  if (written.scheme === 'token') {
    if (
      written.timestamp === undefined &&
      written.id === undefined &&
      written.signed === '{body}' &&
      written.over === 'wire'
    )
      return { scheme: 'token', from: { header: written.header } };
    findings.complain([...at, 'scheme'], 'found token beside what is signed; needs a signature, or a token alone');
    return undefined;
  }
  const problem = templateProblem(written.signed, {
    timestamp: written.timestamp !== undefined,
    id: written.id !== undefined,
  });
  if (problem !== undefined)
    findings.complain([...at, 'signed'], `found ${JSON.stringify(written.signed)}: ${problem}`);
  const timestamp =
    written.timestamp && timestampRule(written.timestamp, written.separator, [...at, 'timestamp'], findings);
  if (problem !== undefined || (written.timestamp !== undefined && timestamp === undefined)) return undefined;
  return {
    scheme: written.scheme,
    signature: {
      header: written.header,
      prefix: written.prefix,
      separator: written.separator,
      encoding: written.encoding,
    },
    timestamp,
    idHeader: written.id,
    signed: written.signed,
  };
}

function timestampRule(
  written: NonNullable<VerifySettings['timestamp']>,
  separator: string | undefined,
  at: Path,
  findings: Findings,
): TimestampRule | undefined {
  const { header, prefix, unit, tolerance: toleranceMs } = written;
  if (header !== undefined && prefix === undefined) return { from: { header }, unit, toleranceMs };
  if (header === undefined && prefix !== undefined && separator !== undefined)
    return { from: { prefix }, unit, toleranceMs };
  const found =
    header !== undefined
      ? 'both header and prefix'
      : prefix !== undefined
        ? 'prefix without verify.separator'
        : 'neither header nor prefix';
  findings.complain(at, `found ${found}; needs a header, or a prefix among the items that verify.separator parts`);
  return undefined;
}
