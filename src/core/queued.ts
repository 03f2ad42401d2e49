/** A delivery as the queue keeps it: everything that the application is sent of it, at every attempt. */
import type { DeliveryKey, Peer, RawHeaders, Received, Trail, Verified } from './delivery.ts';
import type { Share } from './memory.ts';
import type { Place } from './order.ts';
import type { Route } from './route.ts';

export interface QueuedDelivery {
  /** Name of the route that it came in on. */
  readonly route: string;
  /** The event's key; undefined where nothing named it. */
  readonly key: string | undefined;
  readonly method: string;
  readonly target: string;
  /** As they came, signature included. */
  readonly headers: RawHeaders;
  /** The body as it came, content coding and all. */
  readonly body: Buffer;
  readonly peer: Peer | undefined;
  /** In the order of its resource: the body may have a content coding, which a worker does not undo. */
  readonly place?: Place | undefined;
  readonly traceId: string | undefined;
  /** By which its trace goes on, where it is exported. */
  readonly traceparent: string | undefined;
  /** When it was accepted, epoch milliseconds. */
  readonly acceptedWallMs: number;
}

export function queued(
  route: Route,
  delivery: Verified,
  key: DeliveryKey | undefined,
  trail: Trail,
  wallMs: number,
): QueuedDelivery {
  const { method, target, headers, peer, place, trace } = delivery;
  const body = delivery.wire ?? delivery.body;
  return {
    ...{ route: route.name, key: key?.id, method, target, headers, body, peer, place },
    ...{ traceId: trail.traceId, traceparent: trace?.traceparent, acceptedWallMs: wallMs },
  };
}

/** Its signature held when it was accepted, and is not judged again: by now it may be older than the tolerance. */
export function restored({ method, target, headers, body, peer, place }: QueuedDelivery, share: Share): Verified {
  const received: Received & Pick<Verified, 'place'> = { method, target, headers, body, peer, place, share };
  return received as Verified;
}
