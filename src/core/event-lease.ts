import type { DeliveryKey } from './delivery.ts';
import type { Lease, Portion } from './ports.ts';

/** A lease that stands for its event's, with others behind it. */
export class EventLease implements Lease {
  readonly event: Lease;

  constructor(event: Lease) {
    this.event = event;
  }

  get key(): DeliveryKey {
    return this.event.key;
  }

  get attempt(): number {
    return this.event.attempt;
  }

  get memorySinceMs(): number | undefined {
    return this.event.memorySinceMs;
  }

  get portion(): Portion | undefined {
    return this.event.portion;
  }

  validForMs(): number {
    return this.event.validForMs();
  }

  mayStart(): boolean {
    return this.event.mayStart();
  }
}
