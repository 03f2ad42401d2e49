/** A route's secrets, as keys; and what they are called. */
import type { Key } from '../core/delivery.ts';
import type { Sender } from '../core/sender.ts';
import type { Findings, Path } from './complaints.ts';
import type { SecretRef } from './fields.ts';
import type { RouteSettings } from './schema-route.ts';
import { nameOf, readSecret, type Source } from './secrets.ts';

export function readSecrets(
  route: RouteSettings,
  basis: Pick<Sender, 'title' | 'signature' | 'decodeSecret'>,
  at: Path,
  source: Source,
  findings: Findings,
): Key[] {
  const where = [...at, 'secrets'];
  if (basis.signature.scheme === 'none') {
    if (route.secrets.length > 0)
      findings.complain(
        where,
        route.verify
          ? 'found secrets, but verify.scheme is none; needs a scheme that uses them, or no secrets'
          : `found secrets, but ${basis.title} are not signed; needs none`,
      );
    const unsigned = route.verify ? [...at, 'verify', 'scheme'] : [...at, 'sender'];
    findings.warn(unsigned, `${route.verify ? 'none' : route.sender}: anybody who can reach the gateway can post here`);
    return [];
  }
  if (route.secrets.length === 0)
    findings.complain(where, 'found nothing; needs at least one reference, {file: /path/to/secret} or {env: NAME}');
  return route.secrets.flatMap((ref, i) => {
    const text = readSecret(ref, source, [...where, i], findings);
    if (text === undefined) return [];
    const key = basis.decodeSecret(text);
    if (typeof key !== 'string') return [key];
    findings.complain([...where, i], `the secret in ${nameOf(ref)} ${key}`);
    return [];
  });
}

/** What secrets are called in metrics: the last part of the reference; all of it where that would be said of two. */
export function secretNames(refs: readonly SecretRef[]): string[] {
  const short = refs.map(({ file, env }) => (file === undefined ? env! : file.slice(file.lastIndexOf('/') + 1)));
  return refs.map(
    ({ file }, i) => (short.filter((name) => name === short[i]).length > 1 ? file : undefined) ?? short[i]!,
  );
}
