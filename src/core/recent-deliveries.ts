/** The last deliveries that this gateway has answered, for whoever asks what took how long. */
import type { Clock, DeliveryReport } from './ports.ts';

/** A few hundred KiB of memory. */
const KEPT = 1000;

export interface RecentDelivery extends Omit<DeliveryReport, 'route' | 'key' | 'client'> {
  /** When it was answered, epoch milliseconds. */
  readonly wallMs: number;
}

export class RecentDeliveries {
  readonly #clock: Pick<Clock, 'wall'>;
  readonly #kept: { readonly wallMs: number; readonly report: DeliveryReport }[] = [];
  #next = 0;

  constructor(clock: Pick<Clock, 'wall'>) {
    this.#clock = clock;
  }

  note(report: DeliveryReport): void {
    this.#kept[this.#next] = { wallMs: this.#clock.wall(), report };
    this.#next = (this.#next + 1) % KEPT;
  }

  /** Those of one event, the oldest first. */
  of(key: string): RecentDelivery[] {
    const inOrder = [...this.#kept.slice(this.#next), ...this.#kept.slice(0, this.#next)];
    return inOrder
      .filter(({ report }) => report.key === key)
      .map(({ wallMs, report }) => {
        const { route: _route, key: _key, client: _client, ...told } = report;
        return { wallMs, ...told };
      });
  }
}
