/**
 * Traces exported by OTLP over HTTP (protobuf). Loaded only where an endpoint is configured: the SDK costs memory.
 * What the collector does not take is dropped and counted; deliveries never wait for it.
 */
import { ExportResultCode } from '@opentelemetry/core';
import {
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type SpanExporter,
} from '@opentelemetry/sdk-trace';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { Clock, Events, Tracing } from '../core/ports.ts';
import { createTracing } from './tracing.ts';

export interface OtlpOptions {
  /** Of the collector; spans go to `/v1/traces` below it. */
  readonly otlp: string;
  /** Of the deliveries whose sender names no trace, the part that is recorded, 0 to 1. */
  readonly sample: number;
  /** Longest time for the last spans at the end, milliseconds. */
  readonly flushMs: number;
  readonly service: string;
  readonly version: string;
  readonly applicationUrl: string;
}

/** At its end what is still waiting is exported, as far as `flushMs` allows. */
export function startTracing(
  options: OtlpOptions,
  clock: Clock,
  events: Pick<Events, 'spansExported'>,
): Tracing & AsyncDisposable {
  const { otlp, sample, flushMs, service, version, applicationUrl } = options;
  const exporter = counted(new OTLPTraceExporter({ url: `${otlp.replace(/\/$/, '')}/v1/traces` }), events);
  const named = resourceFromAttributes({
    'service.name': 'hookonce',
    'service.version': version,
    'hookonce.service': service,
  });
  const provider = new TracerProvider({
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have the last word, as everywhere.
    resource: named.merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] })),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sample) }),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  });
  return {
    ...createTracing(provider.getTracer('hookonce', version), applicationUrl),
    async [Symbol.asyncDispose]() {
      const over = new AbortController();
      const flushed = provider.shutdown().then(
        () => over.abort(),
        () => over.abort(),
      );
      await Promise.race([flushed, clock.sleep(flushMs, over.signal)]);
    },
  };
}

function counted(exporter: SpanExporter, events: Pick<Events, 'spansExported'>): SpanExporter {
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const { code, error } = result;
        events.spansExported(
          spans.length,
          code === ExportResultCode.SUCCESS ? undefined : (error ?? new Error('refused')),
        );
        done(result);
      });
    },
    shutdown: async () => await exporter.shutdown(),
    ...(exporter.forceFlush && { forceFlush: async () => await exporter.forceFlush!() }),
  };
}
