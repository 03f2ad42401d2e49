/** What the application is sent: the delivery as it came, and the gateway's own headers. */
import type { DeliveryKey, RawHeaders, Verified } from './delivery.ts';
import type { AppRequest } from './ports.ts';
import type { Route } from './route.ts';

/** `attempt` undefined: forwarded without a claim, which the application is told by `Hookonce-Claim: none`. */
export function requestFor(route: Route, delivery: Verified, key: DeliveryKey, attempt: number | undefined): AppRequest {
  const headers = withoutOwn(delivery.headers);
  headers.push('Hookonce-Key', key.id, 'Hookonce-Sender', route.sender);
  if (attempt === undefined) headers.push('Hookonce-Claim', 'none');
  else headers.push('Hookonce-Attempt', String(attempt));
  return { method: delivery.method, target: delivery.target, headers, body: delivery.body };
}

/** A sender must not be able to speak in the gateway's name. */
function withoutOwn(headers: RawHeaders): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (!/^hookonce-/i.test(headers[i]!)) kept.push(headers[i]!, headers[i + 1]!);
  }
  return kept;
}
