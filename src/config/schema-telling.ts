/** What the gateway tells about itself beside its log. */
import * as z from 'zod';
import { address } from './address.ts';
import { section } from './fields.ts';

const ratioForm = 'a number from 0 to 1';

export const tracingSchema = section({
  otlp: address(
    { http: 4318, https: 4318 },
    'a URL without user and password; what the collector wants to see goes into the environment variable OTEL_EXPORTER_OTLP_HEADERS',
  )
    .optional()
    .describe(
      'Collector that takes OTLP over HTTP, such as http://otel-collector:4318. Without it there are no traces.',
    ),
  sample: z
    .number({ error: ratioForm })
    .min(0, { error: ratioForm })
    .max(1, { error: ratioForm })
    .default(1)
    .describe(
      'Part of the deliveries that is recorded, where the sender names no trace; otherwise the sender decides.',
    ),
});

export const metricsSchema = section({
  openMetrics: z
    .boolean()
    .default(false)
    .describe(
      'Answers /metrics in the OpenMetrics format, where the durations of deliveries carry exemplars: the id of the trace behind a bucket.',
    ),
});
