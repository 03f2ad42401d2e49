/** One delivery in numbers. */
import type { DeliveryReport } from '../core/ports.ts';
import type { Metrics } from './metrics.ts';

export function countDelivery(metrics: Metrics, report: DeliveryReport): void {
  const { route, outcome, reason, status, totalMs, upstreamMs, traceId } = report;
  metrics.deliveries.inc({ route, outcome });
  if (outcome === 'rejected') metrics.rejections.inc({ route, reason: reason ?? 'bad_request' });
  if (outcome === 'unreachable' || outcome === 'uncertain') metrics.failures.inc({ route, reason: reason ?? 'error' });
  metrics.duration.observeTraced({ route }, totalMs / 1000, traceId);
  metrics.overhead.observe({ route }, Math.max(0, totalMs - (upstreamMs ?? 0)) / 1000);
  if (upstreamMs !== undefined)
    metrics.upstream.observeTraced({ route, code_class: `${Math.floor(status / 100)}xx` }, upstreamMs / 1000, traceId);
}
