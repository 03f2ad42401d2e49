/** The trace that a delivery belongs to, so that its log line and its done record name it (W3C Trace Context, level 1). */
import { isValidTraceId } from '@opentelemetry/api';
import { allHeaders, type RawHeaders } from '../core/delivery.ts';

/** 32 hex digits; undefined without exactly one well-formed `traceparent`. */
export function traceIdOf(headers: RawHeaders): string | undefined {
  const [given, ...more] = allHeaders(headers, 'traceparent');
  const id = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-|$)/.exec(given ?? '')?.[1];
  return id !== undefined && more.length === 0 && isValidTraceId(id) ? id : undefined;
}
