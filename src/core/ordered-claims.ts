/**
 * Claims for routes with an order (docs/ordering.md): the event's lock first and its resource's second, both only
 * tried, so there is no deadlock. Under the lock of the resource the version is written as pending before the event is
 * forwarded, and becomes the applied one with its success.
 *
 * | event   | resource | version                                     | result                                             |
 * | not won | –        | –                                           | as without an order                                |
 * | won     | busy     | –                                           | held by the resource; the event is given back      |
 * | won     | won      | older than the applied one                  | won, stale                                         |
 * | won     | won      | older than a pending one of unknown outcome | won, maybe stale                                   |
 * | won     | won      | anything else, the applied one included     | won                                                |
 * | won     | –        | cannot be read                              | won, maybe stale: nothing is known of its order    |
 *
 *     success           → applied, on a quorum, before the resource is free again
 *     definite failure  → the pending version before it takes its place again
 *     no answer, death  → stays pending: what is older may be stale
 */
import type { Background } from './background.ts';
import type { DeliveryKey } from './delivery.ts';
import { EventLease } from './event-lease.ts';
import type { Place } from './order.ts';
import type { ClaimResult, Claims, Clock, Completion, Lease, Standing, VersionStore } from './ports.ts';

export interface OrderedParts {
  /** For the event. */
  readonly event: Claims;
  /** For the lock of the resource. */
  readonly resource: Claims;
  readonly versions: VersionStore;
  readonly clock: Clock;
  readonly background: Background;
  /** Of the lock's life: how long it may be kept while a success has not been written to a quorum. */
  readonly maxHoldMs: number;
  readonly lockTtlMs: number;
}

const FIRST_PAUSE_MS = 50;

export class OrderedClaims implements Claims {
  readonly #parts: OrderedParts;
  readonly #place: Place | undefined;
  readonly #keepMs: number;

  /** `place` undefined: it could not be read. `keepMs`: how long versions are remembered. */
  constructor(parts: OrderedParts, place: Place | undefined, keepMs: number) {
    this.#parts = parts;
    this.#place = place;
    this.#keepMs = keepMs;
  }

  async claim(key: DeliveryKey, retentionMs: number): Promise<ClaimResult> {
    const { event, resource, versions } = this.#parts;
    const claim = await event.claim(key, retentionMs);
    if (claim.kind !== 'won') return claim;
    if (!this.#place) return { kind: 'won', lease: new OrderedLease(claim.lease, undefined, 'maybe') };
    const { lock, versions: at, version } = this.#place;
    // Its record, which only counts attempts, is of no use once it is free again.
    const taken = await resource.claim(lock, 1);
    if (taken.kind !== 'won') {
      await event.release(claim.lease, false);
      // Nobody holds the event itself: where copies in flight are answered with success, this one must not be.
      return taken.kind === 'held' ? { ...taken, split: true, of: lock } : { kind: 'unavailable' };
    }
    const before = await versions.order({
      id: at.id,
      applied: '',
      pending: version,
      instead: '',
      keepMs: this.#keepMs,
    });
    if (before === 'unavailable') {
      await Promise.all([event.release(claim.lease, false), resource.release(taken.lease, false)]);
      return { kind: 'unavailable' };
    }
    const { applied, pending } = before;
    const stale = version < applied ? 'true' : version < pending && applied < pending ? 'maybe' : undefined;
    return { kind: 'won', lease: new OrderedLease(claim.lease, { lease: taken.lease, pending }, stale) };
  }

  /** The event's is the one that counts. */
  async extend(lease: Lease): Promise<boolean> {
    const { event, resource } = lease as OrderedLease;
    const [held] = await Promise.all([
      this.#parts.event.extend(event),
      resource && this.#parts.resource.extend(resource.lease),
    ]);
    return held;
  }

  async complete(lease: Lease, completion: Completion): Promise<void> {
    const own = lease as OrderedLease;
    await Promise.all([this.#parts.event.complete(own.event, completion), this.#apply(own)]);
  }

  async release(lease: Lease, sent: boolean): Promise<void> {
    const own = lease as OrderedLease;
    await this.#settle(own, false);
    await Promise.all([this.#parts.event.release(own.event, sent), this.#free(own)]);
  }

  async leave(lease: Lease): Promise<void> {
    const { event, resource } = lease as OrderedLease;
    await Promise.all([this.#parts.event.leave(event), resource && this.#parts.resource.leave(resource.lease)]);
  }

  async peek(key: DeliveryKey): Promise<Standing> {
    return await this.#parts.event.peek(key);
  }

  /** The resource is free only when every later event learns of this version: the lock is kept until a quorum has it. */
  async #apply(lease: OrderedLease): Promise<void> {
    if (lease.isDropped || (await this.#settle(lease, true))) return await this.#free(lease);
    this.#parts.background.run(this.#applyLater(lease));
  }

  async #applyLater(lease: OrderedLease): Promise<void> {
    const { clock, maxHoldMs, lockTtlMs, resource } = this.#parts;
    const untilMs = clock.now() + maxHoldMs;
    for (let pauseMs = FIRST_PAUSE_MS; clock.now() < untilMs; pauseMs = Math.min(2 * pauseMs, lockTtlMs / 4)) {
      await clock.sleep(pauseMs);
      if (lease.resource) await resource.extend(lease.resource.lease);
      if (await this.#settle(lease, true)) break;
    }
    await this.#free(lease);
  }

  /** False: no quorum has it. */
  async #settle({ resource }: OrderedLease, isApplied: boolean): Promise<boolean> {
    if (!resource || !this.#place) return true;
    const { versions: at, version } = this.#place;
    const change = { id: at.id, applied: isApplied ? version : '', pending: resource.pending, instead: version };
    return (await this.#parts.versions.order({ ...change, keepMs: this.#keepMs })) !== 'unavailable';
  }

  async #free({ resource }: OrderedLease): Promise<void> {
    if (resource) await this.#parts.resource.release(resource.lease, false);
  }
}

/** The event's lease and its resource's, seen as the event's. */
export class OrderedLease extends EventLease {
  /** `pending`: the version that was pending before. */
  readonly resource: { readonly lease: Lease; readonly pending: string } | undefined;
  readonly stale: 'true' | 'maybe' | undefined;
  /** The event is not forwarded: its version is not applied. */
  isDropped = false;

  constructor(event: Lease, resource: OrderedLease['resource'], stale: OrderedLease['stale']) {
    super(event);
    this.resource = resource;
    this.stale = stale;
  }

  drop(): void {
    this.isDropped = true;
  }

  override mayStart(): boolean {
    return super.mayStart() && (this.resource?.lease.mayStart() ?? true);
  }
}
