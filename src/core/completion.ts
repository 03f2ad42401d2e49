/** What a done event leaves behind, for those who ask for it again. */
import { header, type AppReply, type Done, type StoredReply, type Trail, type Verified } from './delivery.ts';
import { fingerprintOf } from './identify.ts';
import type { Completion } from './ports.ts';
import type { Route } from './route.ts';

/** Larger replies are not kept. */
const MAX_STORED_REPLY = 4 * 1024;

export function completionOf(route: Route, delivery: Verified, reply: AppReply, trail: Trail): Completion {
  const stored = route.duplicateReply === 'stored' ? storedReply(reply) : undefined;
  const { traceId = '', spanId } = trail;
  const kept = { status: reply.status, traceId, ...(spanId !== undefined && { spanId }), reply: stored };
  return asksForBody(route) ? { ...kept, fingerprint: fingerprintOf(delivery) } : kept;
}

/** Whether a copy has the body with which its event was handled. Records from before the route asked for it say nothing. */
export function hasSameBody(route: Route, done: Done, delivery: Verified): boolean {
  return !asksForBody(route) || done.fingerprint === undefined || done.fingerprint === fingerprintOf(delivery);
}

const asksForBody = ({ fingerprint = 'ignore' }: Route): boolean => fingerprint !== 'ignore';

function storedReply(reply: AppReply): StoredReply | 'omitted' {
  if (!reply.body || reply.body.length > MAX_STORED_REPLY) return 'omitted';
  return { contentType: header(reply.headers, 'content-type'), body: reply.body };
}
