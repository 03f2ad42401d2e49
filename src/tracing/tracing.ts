/**
 * Deliveries as traces: a span for the delivery as a whole, and below it one for each of its steps.
 *
 *     receive ─┬─ claim       on the voters
 *              ├─ forward     at the application, which is told of this span
 *              └─ complete    on the voters again
 *
 * The trace is the one that the sender names, or a new one; whether it is recorded is the sender's decision, too,
 * where it says so. A duplicate is linked to the delivery that handled its event, as the done record has it.
 * Attributes follow OpenTelemetry's conventions for HTTP; but no query, and no path with a variable part, is among
 * them: senders are known to put secrets there.
 */
import { ROOT_CONTEXT, SpanKind, trace, TraceFlags, type Context, type Tracer } from '@opentelemetry/api';
import type { Arrival, Resumed, Tracing } from '../core/ports.ts';
import { traceContextOf, type TraceContext } from '../core/trace-context.ts';
import { SpannedDelivery } from './spanned-delivery.ts';

/** `applicationUrl`: `http://host:port`, `https://host:port` or `unix:/path`. */
export function createTracing(tracer: Tracer, applicationUrl: string): Tracing {
  return {
    receive(arrival) {
      const parent = traceContextOf(arrival.headers);
      const options = { kind: SpanKind.SERVER, attributes: attributesOf(arrival) };
      const span = tracer.startSpan('receive', options, contextOf(parent));
      return new SpannedDelivery(tracer, span, { parent, applicationUrl, path: arrival.path });
    },
    resume({ traceparent, route, path }: Resumed) {
      const parent = traceContextOf(['traceparent', traceparent]);
      const links = parent === undefined ? [] : [{ context: spanContext(parent) }];
      const options = { kind: SpanKind.CONSUMER, attributes: { 'hookonce.route': route }, links };
      const span = tracer.startSpan('work', options, contextOf(parent));
      return new SpannedDelivery(tracer, span, { parent, applicationUrl, path });
    },
  };
}

const spanContext = ({ traceId, spanId, flags }: TraceContext) => ({
  traceId,
  spanId,
  traceFlags: flags & TraceFlags.SAMPLED,
  isRemote: true,
});

const contextOf = (parent: TraceContext | undefined): Context =>
  parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, spanContext(parent));

/** Those that the conventions know; any other would be a name that anybody can make up. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH', 'QUERY'];

function attributesOf({ route, path, method, client }: Arrival): Record<string, string> {
  return {
    'http.request.method': METHODS.includes(method) ? method : '_OTHER',
    'url.scheme': 'http',
    'hookonce.route': route,
    ...(path !== undefined && { 'http.route': path }),
    ...(path !== undefined && !path.includes('*') && { 'url.path': path }),
    ...(client !== undefined && { 'client.address': client }),
  };
}
