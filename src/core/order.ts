/** Which resource a delivery is about, and in which version: what keeps an older event from following a newer one. */
import type { DeliveryKey, Verified } from './delivery.ts';
import { keyOf, readEach, type IdentityPart } from './identify.ts';
import { versionOf, type VersionType } from './version.ts';

export interface OrderRule {
  /** All of them together name the resource, within the route. */
  readonly resource: readonly IdentityPart[];
  readonly version: IdentityPart;
  readonly type: VersionType;
  /** What becomes of an event that is older than what was applied: answered with success, or forwarded and marked. */
  readonly onStale: 'drop' | 'mark';
}

export interface Place {
  /** Whose lock lets one event of the resource be forwarded at a time. */
  readonly lock: DeliveryKey;
  /** Under which its versions are kept. */
  readonly versions: DeliveryKey;
  readonly version: string;
}

/** Undefined: its resource or its version cannot be read. */
export function placeOf(rule: OrderRule, service: string, route: string, delivery: Verified): Place | undefined {
  const [version, ...resource] = readEach([rule.version, ...rule.resource], delivery);
  const named = resource.flatMap((part) => part ?? []);
  if (version?.length !== 1 || resource.includes(undefined) || named.length === 0) return undefined;
  const sortable = versionOf(rule.type, version[0]!.bytes.toString('utf16le'));
  if (sortable === undefined) return undefined;
  const key = (kind: 'resource' | 'versions'): DeliveryKey =>
    keyOf(service, route, [{ kind, bytes: Buffer.alloc(0) }, ...named]);
  return { lock: key('resource'), versions: key('versions'), version: sortable };
}
