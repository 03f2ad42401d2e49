/** What the application is sent: the delivery as it came, and the gateway's own headers. */
import type { DeliveryKey, OutcomeKind, RawHeaders, Received, Verified } from './delivery.ts';
import { withForwarded } from './forwarded.ts';
import type { AppRequest, Lease } from './ports.ts';
import type { Route } from './route.ts';

/** `lease` undefined: forwarded without a claim, which the application is told by `Hookonce-Claim: none`; it may then have no key either. */
export function requestFor(
  route: Route,
  delivery: Verified,
  key: DeliveryKey | undefined,
  lease: Lease | undefined,
): AppRequest {
  const marks = lease === undefined ? ['Hookonce-Claim', 'none'] : ['Hookonce-Attempt', String(lease.attempt)];
  if (lease?.memorySinceMs !== undefined)
    marks.push('Hookonce-Memory-Since', String(Math.ceil(lease.memorySinceMs / 1000)));
  if (lease?.stale !== undefined) marks.push('Hookonce-Stale', lease.stale);
  const { portion } = lease ?? {};
  if (portion === undefined) return marked(route, delivery, key?.id, marks);
  marks.push('Hookonce-Elements', `${portion.kept}/${portion.of}`);
  const request = marked(route, delivery, key?.id, marks);
  const { body } = portion;
  return body === undefined ? request : { ...request, headers: without(request.headers, /^content-encoding$/i), body };
}

/** On a route that only observes: what would have been stopped goes on, verified or not, and `would` says as what. */
export function observedRequest(
  route: Route,
  received: Received,
  key: string | undefined,
  would: OutcomeKind,
): AppRequest {
  return marked(route, received, key, ['Hookonce-Observed', would]);
}

function marked(route: Route, received: Received, key: string | undefined, marks: RawHeaders): AppRequest {
  const headers = withForwarded(withoutOwn(received.headers), received.peer);
  if (key !== undefined) headers.push('Hookonce-Key', key);
  headers.push('Hookonce-Sender', route.sender, ...marks);
  const { method, target, share } = received;
  return { method, target, headers, body: received.wire ?? received.body, ...(share && { share }) };
}

/** Nobody else may speak in the gateway's name. */
export const withoutOwn = (headers: RawHeaders): string[] => without(headers, /^hookonce-/i);

function without(headers: RawHeaders, names: RegExp): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (!names.test(headers[i]!)) kept.push(headers[i]!, headers[i + 1]!);
  }
  return kept;
}
