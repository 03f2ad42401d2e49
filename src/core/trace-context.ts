/** W3C Trace Context (level 2): which trace a delivery belongs to, as its headers say it. */
import { allHeaders, type RawHeaders } from './delivery.ts';

export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string;
  /** Of the span that went before, 16 hex digits. */
  readonly spanId: string;
  /** One byte; the lowest bit: those before record the trace. */
  readonly flags: number;
}

/** Among the flags: the trace id is random as a whole; kept by everyone who continues the trace. */
export const RANDOM = 0x02;

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/** Undefined without exactly one well-formed `traceparent`. Of versions to come the known fields are read. */
export function traceContextOf(headers: RawHeaders): TraceContext | undefined {
  const [given, ...more] = allHeaders(headers, 'traceparent');
  if (given === undefined || more.length > 0) return undefined;
  const [, version, traceId, spanId, flags, rest] = FORM.exec(given) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId!) || /^0+$/.test(spanId!)) return undefined;
  return { traceId: traceId!, spanId: spanId!, flags: Number.parseInt(flags!, 16) };
}

export function traceparentOf({ traceId, spanId, flags }: TraceContext): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
}

/**
 * The same headers with exactly one `traceparent`, in the place of the first. `continued`: the trace is the one that
 * they name; otherwise what they say of its state belongs to another, and is left out.
 */
export function withTraceparent(headers: RawHeaders, traceparent: string, continued: boolean): string[] {
  const lines: string[] = [];
  let written = false;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase();
    if (name === 'traceparent') {
      if (!written) lines.push(headers[i]!, traceparent);
      written = true;
    } else if (name !== 'tracestate' || continued) {
      lines.push(headers[i]!, headers[i + 1]!);
    }
  }
  if (!written) lines.push('traceparent', traceparent);
  return lines;
}
