/** A histogram whose samples name the trace behind them, on a registry whose format has exemplars for that. */
import { Histogram, Registry, type HistogramConfiguration, type LabelValues } from 'prom-client';

export class Exemplified<L extends string> extends Histogram<L> {
  readonly #exemplars: boolean;

  constructor(configuration: HistogramConfiguration<L> & { readonly registers: readonly Registry[] }) {
    const enableExemplars = configuration.registers.every(isOpenMetrics);
    super({ ...configuration, enableExemplars });
    this.#exemplars = enableExemplars;
  }

  /** `traceId`: 32 hex digits, undefined without a trace. */
  observeTraced(labels: Record<L, string>, value: number, traceId: string | undefined): void {
    // The library takes one object where exemplars are on, and not otherwise.
    if (!this.#exemplars) this.observe(labels, value);
    else this.observe({ labels, value, exemplarLabels: exemplarOf(traceId) });
  }
}

/** The library's types want the labels of the metric here, which an exemplar does not have. */
const exemplarOf = <L extends string>(traceId: string | undefined): LabelValues<L> =>
  (traceId === undefined ? {} : { trace_id: traceId }) as LabelValues<L>;

const isOpenMetrics = ({ contentType }: Registry): boolean => !contentType.startsWith('text/plain');
