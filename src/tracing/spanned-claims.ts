/** Claims with a span for each that is tried, and for each completion. */
import { SpanStatusCode, type Span } from '@opentelemetry/api';
import type { DeliveryKey } from '../core/delivery.ts';
import type { ClaimResult, Claims, Completion, Lease, Standing } from '../core/ports.ts';

export class SpannedClaims implements Claims {
  readonly #claims: Claims;
  readonly #begin: (step: 'claim' | 'complete') => Span;

  constructor(claims: Claims, begin: (step: 'claim' | 'complete') => Span) {
    this.#claims = claims;
    this.#begin = begin;
  }

  async claim(key: DeliveryKey, retentionMs: number): Promise<ClaimResult> {
    const span = this.#begin('claim');
    const result = await this.#claims.claim(key, retentionMs);
    span.setAttribute('hookonce.claim.result', result.kind);
    if (result.kind === 'won') span.setAttribute('hookonce.attempt', result.lease.attempt);
    if (result.kind === 'unavailable') span.setStatus({ code: SpanStatusCode.ERROR });
    span.end();
    return result;
  }

  /** Over with the first try; what is repeated in the background is not the delivery's. */
  async complete(lease: Lease, completion: Completion): Promise<void> {
    const span = this.#begin('complete');
    span.setAttribute('hookonce.attempt', lease.attempt);
    await this.#claims.complete(lease, completion);
    span.end();
  }

  around(make: (claims: Claims) => Claims): SpannedClaims {
    return new SpannedClaims(make(this.#claims), this.#begin);
  }

  async extend(lease: Lease): Promise<boolean> {
    return await this.#claims.extend(lease);
  }

  async release(lease: Lease, sent: boolean): Promise<void> {
    await this.#claims.release(lease, sent);
  }

  async leave(lease: Lease): Promise<void> {
    await this.#claims.leave(lease);
  }

  async peek(key: DeliveryKey): Promise<Standing> {
    return await this.#claims.peek(key);
  }
}
