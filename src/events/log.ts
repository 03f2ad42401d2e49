/** Log lines: JSON, one for each delivery. No secret, no body, no whole key. */
import { pino, type DestinationStream, type Logger } from 'pino';
import { shortKey } from '../core/leads.ts';
import type { DeliveryReport } from '../core/ports.ts';
import { plainError } from './plain-error.ts';

/** JSON lines to standard output; the level is a pino level. */
export function createLog(level: string, stream?: DestinationStream): Logger {
  const formatters = { level: (label: string) => ({ level: label }) };
  const options = { level, base: null, formatters, serializers: { err: plainError } };
  return stream === undefined ? pino(options) : pino(options, stream);
}

export function deliveryLine(report: DeliveryReport): Record<string, unknown> {
  const { key, totalMs, claimMs, upstreamMs, ...rest } = report;
  return {
    ...rest,
    ...(key === undefined ? {} : { key: shortKey(key) }),
    totalMs: rounded(totalMs),
    ...(claimMs === undefined ? {} : { claimMs: rounded(claimMs) }),
    ...(upstreamMs === undefined ? {} : { upstreamMs: rounded(upstreamMs) }),
  };
}

export const rounded = (ms: number): number => Math.round(ms * 100) / 100;
