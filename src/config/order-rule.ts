/** What a resource and its version are on a route: what it says, or what is known of its sender. */
import type { IdentityPart } from '../core/identify.ts';
import { parsePointer } from '../core/json-pointer.ts';
import type { Route } from '../core/route.ts';
import type { Sender } from '../core/sender.ts';
import type { Findings, Path } from './complaints.ts';
import type { RouteSettings } from './schema-route.ts';

/** Empty where the route asks for no order, or after a complaint. */
export function orderRule(
  { ordering, elements }: Pick<RouteSettings, 'ordering' | 'elements'>,
  known: Sender['ordering'],
  route: Path,
  findings: Findings,
): Pick<Route, 'ordering'> {
  if (ordering === undefined) return {};
  const at = [...route, 'ordering'];
  if (elements !== undefined && elements !== 'whole') {
    findings.complain(at, 'found with elements; needs one or the other, as each element has an order of its own');
    return {};
  }
  const { onStale } = ordering;
  const resource = ordering.resource ? [partOf(ordering.resource)] : known?.resource;
  const version = ordering.version ? partOf(ordering.version) : known?.version;
  const type = ordering.version?.type ?? known?.type;
  if (resource && version && type) return { ordering: { resource, version, type, onStale } };
  findings.complain(
    at,
    `found no ${resource ? 'version' : 'resource'}; needs resource and version, because nothing is known of them for this sender`,
  );
  return {};
}

interface Written {
  readonly header?: string | undefined;
  readonly json?: string | undefined;
  readonly form?: string | undefined;
}

function partOf({ header, json, form }: Written): IdentityPart {
  if (header !== undefined) return { from: 'header', names: [header] };
  return form === undefined ? { from: 'json', pointer: parsePointer(json!)! } : { from: 'form', field: form };
}
