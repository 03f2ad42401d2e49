/** Whether each element of a route's deliveries is an event: what it says, or what is known of its sender. */
import type { ElementRule } from '../core/elements.ts';
import type { IdentityRule } from '../core/identify.ts';
import { parsePointer } from '../core/json-pointer.ts';
import type { Sender } from '../core/sender.ts';
import type { Findings, Path } from './complaints.ts';
import type { RouteSettings } from './schema-route.ts';

type Flat = Extract<ElementRule, { each: unknown }>;

/** Undefined: a delivery is one event; or after a complaint. */
export function elementRule(
  route: RouteSettings,
  { title, elements: known }: Pick<Sender, 'title' | 'elements'>,
  at: Path,
  findings: Findings,
): ElementRule | undefined {
  const written = route.elements ?? 'whole';
  if (written === 'whole') return undefined;
  refuseWhatDoesNotFit(route, at, findings);
  if (written === 'each') {
    if (known === undefined)
      findings.complain(
        [...at, 'elements'],
        `found each, but it is not known where ${title} has several events in a delivery; needs {at: /list, id: [/pointer]}, or whole`,
      );
    return known;
  }
  const each = written.id.map((pointer) => ({ pointer: parsePointer(pointer)! }));
  return { list: parsePointer(written.at)!, each };
}

/** Elements that a route describes itself name the delivery as a whole, too. */
export function namedByElements(route: RouteSettings, rule: ElementRule | undefined): IdentityRule | undefined {
  if (rule === undefined || typeof route.elements === 'string') return undefined;
  const { list, each } = rule as Flat;
  return { parts: [{ from: 'json-list', list, each }], bodyHash: false, missing: 'reject', scope: 'route' };
}

/** What is said of a delivery as a whole, and would be wrong of some of its elements. */
function refuseWhatDoesNotFit(route: RouteSettings, at: Path, findings: Findings): void {
  const misfits: [string[], boolean, string][] = [
    [
      ['identity'],
      route.identity !== undefined && (route.identity.parts.length > 0 || route.identity.bodyHash),
      'found what names an event, and so does elements; needs one of them (identity.missing alone is fine)',
    ],
    [
      ['inFlight', 'policy'],
      route.inFlight.policy === 'accept',
      'found accept, but with elements that would lose the events of a delivery that nobody holds yet; needs wait or reject',
    ],
    [
      ['mode'],
      route.mode === 'async',
      'found async, but elements are claimed for as long as the application works on them; needs sync',
    ],
    [
      ['fingerprint'],
      route.fingerprint !== 'ignore',
      `found ${route.fingerprint}, but with elements the same event comes in many bodies; needs ignore`,
    ],
    [
      ['duplicate', 'reply'],
      route.duplicate.reply === 'stored',
      'found stored, but with elements an answer is for several events at once; needs empty',
    ],
  ];
  for (const [setting, found, sentence] of misfits) if (found) findings.complain([...at, ...setting], sentence);
}
