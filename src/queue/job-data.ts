/**
 * A job's data: JSON, as both backends keep it. Bytes of the body are base64; header lines are a list, so that
 * order, case and repeats survive.
 */
import type { Peer } from '../core/delivery.ts';
import type { Place } from '../core/order.ts';
import type { Replay } from '../core/queue.ts';
import type { QueuedDelivery } from '../core/queued.ts';

export interface JobData {
  /** Of this form; another one is not read. */
  readonly form: 1;
  readonly route: string;
  readonly key?: string | undefined;
  readonly method: string;
  readonly target: string;
  readonly headers: readonly string[];
  readonly body: string;
  readonly peer?: Peer | undefined;
  readonly place?: Place | undefined;
  readonly traceId?: string | undefined;
  readonly traceparent?: string | undefined;
  /** When it was accepted, epoch milliseconds. */
  readonly at: number;
  readonly replay?: Replay | undefined;
  readonly replays?: number | undefined;
}

export function toData({ body, acceptedWallMs, ...rest }: QueuedDelivery): JobData {
  return { form: 1, ...rest, body: body.toString('base64'), at: acceptedWallMs };
}

/** Throws for a form that another version has written: a gateway of that version will take it. */
export function fromData(data: JobData): QueuedDelivery {
  const { form, route, key, method, target, headers, body, peer, place, traceId, traceparent, at } = data;
  if (form !== 1) throw new Error(`a job of form ${String(form)}, which this version does not know`);
  return {
    ...{ route, key, method, target, headers, peer, place, traceId, traceparent },
    body: Buffer.from(body, 'base64'),
    acceptedWallMs: at,
  };
}

/**
 * Ids are unique: BullMQ ignores an id that it knows, silently. They begin with the time, so that the age of a job
 * is known without reading it. `random`: at least 9 bytes.
 */
export function jobId(wallMs: number, random: Buffer): string {
  return `${Math.floor(wallMs).toString(36)}-${random.toString('base64url')}`;
}

/** Epoch milliseconds; undefined for an id that is not ours. */
export function acceptedAt(id: string): number | undefined {
  const ms = Number.parseInt(/^[0-9a-z]{6,10}(?=-)/.exec(id)?.[0] ?? '', 36);
  return Number.isNaN(ms) ? undefined : ms;
}
