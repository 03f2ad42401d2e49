/**
 * Claims for routes whose sender signs the content but not its id: whoever has captured one delivery could
 * send it again for ever under fresh ids. So the content is claimed as well, after the event:
 *
 * | event     | content               | result                                                                 |
 * | not won   | –                     | as without the guard: a redelivery under the same id is a duplicate    |
 * | won       | won                   | won: both are held, extended and settled together                      |
 * | attempt 1 | done                  | a replay: the event is given back, and answered like a duplicate       |
 * | attempt 2 | done                  | won: it is a known event that comes again, after a failure or `forget` |
 * | won       | held or no quorum     | that; the event is given back                                          |
 *
 * Both are only tried, never waited for under the other: there is no deadlock.
 */
import type { DeliveryKey } from './delivery.ts';
import { EventLease } from './event-lease.ts';
import type { ClaimResult, Claims, Completion, Lease, Standing } from './ports.ts';

export class GuardedClaims implements Claims {
  readonly #claims: Claims;
  readonly #content: DeliveryKey;
  readonly #windowMs: number;

  /** `windowMs`: how long content that was handled is remembered. */
  constructor(claims: Claims, content: DeliveryKey, windowMs: number) {
    this.#claims = claims;
    this.#content = content;
    this.#windowMs = windowMs;
  }

  async claim(key: DeliveryKey, retentionMs: number): Promise<ClaimResult> {
    const event = await this.#claims.claim(key, retentionMs);
    if (event.kind !== 'won') return event;
    const content = await this.#claims.claim(this.#content, this.#windowMs);
    if (content.kind === 'won') return { kind: 'won', lease: new PairedLease(event.lease, content.lease) };
    if (content.kind === 'done' && event.lease.attempt > 1) return event;
    await this.#claims.release(event.lease, false);
    if (content.kind === 'held') return { ...content, of: this.#content };
    return content.kind === 'done' ? { ...content, replay: true } : content;
  }

  /** The event's is the one that counts: of the content's a lost lock lets a replay through, and no more. */
  async extend(lease: Lease): Promise<boolean> {
    const [held] = await Promise.all(leasesOf(lease).map(async (one) => await this.#claims.extend(one)));
    return held!;
  }

  async complete(lease: Lease, completion: Completion): Promise<void> {
    await Promise.all(leasesOf(lease).map(async (one) => await this.#claims.complete(one, completion)));
  }

  async release(lease: Lease, sent: boolean): Promise<void> {
    await Promise.all(leasesOf(lease).map(async (one) => await this.#claims.release(one, sent)));
  }

  async leave(lease: Lease): Promise<void> {
    await Promise.all(leasesOf(lease).map(async (one) => await this.#claims.leave(one)));
  }

  async peek(key: DeliveryKey): Promise<Standing> {
    return await this.#claims.peek(key);
  }
}

/** The event's lease and its content's, seen as the event's. */
class PairedLease extends EventLease {
  readonly content: Lease;

  constructor(event: Lease, content: Lease) {
    super(event);
    this.content = content;
  }

  override mayStart(): boolean {
    return super.mayStart() && this.content.mayStart();
  }
}

const leasesOf = (lease: Lease): readonly Lease[] =>
  lease instanceof PairedLease ? [lease.event, lease.content] : [lease];
