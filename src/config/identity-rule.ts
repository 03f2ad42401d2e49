/** What names an event on a route: what it says, or what is known of its sender. */
import type { IdentityRule } from '../core/identify.ts';
import { parsePointer } from '../core/json-pointer.ts';
import type { Findings, Path } from './complaints.ts';
import type { IdentitySettings } from './schema-route.ts';

/** What is written replaces the sender's own identity as a whole. Undefined after a complaint. */
export function identityRule(
  written: IdentitySettings | undefined,
  known: IdentityRule | undefined,
  at: Path,
  findings: Findings,
): IdentityRule | undefined {
  if (written === undefined) {
    if (known === undefined)
      findings.complain(
        [...at, 'identity'],
        'found nothing; needs parts or bodyHash, because verify does not say what names an event',
      );
    return known;
  }
  if (written.parts.length === 0 && !written.bodyHash) {
    // Only what happens without an identity is written: what names an event is still the sender's to say.
    if (known !== undefined && written.missing !== 'reject') return { ...known, missing: written.missing };
    findings.complain([...at, 'identity'], 'found neither parts nor bodyHash; needs something that names an event');
    return undefined;
  }
  const parts = written.parts.map((part): IdentityRule['parts'][number] => {
    if (part.header !== undefined) return { from: 'header', names: [part.header] };
    if (part.form !== undefined) return { from: 'form', field: part.form };
    return { from: 'json', pointer: parsePointer(part.json!)! };
  });
  return { parts, bodyHash: written.bodyHash, missing: written.missing, scope: written.scope };
}
