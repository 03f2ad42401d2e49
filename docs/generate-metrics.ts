/** docs/metrics.md, from the metrics themselves: `node docs/generate-metrics.ts` writes it; a test compares. */
import { writeFileSync } from 'node:fs';
import type { Registry } from 'prom-client';
import { createEvents } from '../src/events/events.ts';
import { createLog } from '../src/events/log.ts';
import { createRegistry } from '../src/events/metrics.ts';

/** Labels whose values are names of one's own. */
const OWN: Readonly<Record<string, string>> = {
  route: 'name of the route, or `unmatched`',
  node: 'name of the voter, `host:port`',
  secret: 'name of the secret: its file or variable',
  version: 'version that runs',
};

interface Described {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly { readonly name: string; readonly values: readonly string[] }[];
}

/** Every metric of a gateway with all its parts, as it starts. */
export async function described(): Promise<Described[]> {
  const registry = createRegistry(false);
  const { log, ...names } = {
    log: createLog('silent'),
    nodes: ['node'],
    routes: [{ name: 'route', secretNames: ['secret'], async: true }],
  };
  createEvents({
    ...names,
    log,
    registry,
    upstreamTimeoutMs: 15_000,
    version: 'version',
    wallMs: 0,
    queue: true,
    ledger: { decidesAlone: () => true },
  });
  return await Promise.all(
    registry.getMetricsAsArray().map(async ({ name, help }) => await describe(registry, name, help)),
  );
}

async function describe(registry: Registry, name: string, help: string): Promise<Described> {
  const metric = registry.getSingleMetric(name)!;
  const { type, values } = await metric.get();
  const { labelNames } = metric as unknown as { readonly labelNames: readonly string[] };
  const labels = labelNames.map((label) => {
    const seen = values.map(({ labels: given }) => (given as Record<string, string | number>)[label]);
    return { name: label, values: [...new Set(seen.filter((value) => value !== undefined))].map(String) };
  });
  return { name, type: String(type), help, labels };
}

export async function reference(): Promise<string> {
  const metrics = await described();
  const own = metrics.filter(({ name }) => name.startsWith('hookonce_'));
  const others = metrics.filter((metric) => !own.includes(metric));
  return `${[
    '<!-- Made from src/events by docs/generate-metrics.ts: change it there. -->',
    introduction,
    '| metric | labels | |\n| --- | --- | --- |',
  ].join('\n\n')}\n${own.map(row).join('\n')}\n\n${[
    `Beside these, those of the process and of Node.js: ${others.map(({ name }) => `\`${name}\``).join(', ')}.`,
    logs,
    traces,
  ].join('\n\n')}\n`;
}

function row({ name, type, help, labels }: Described): string {
  const told = labels.map((label) => {
    const values = OWN[label.name] === undefined ? label.values.map((value) => `\`${value}\``).join(', ') : '';
    return values === '' ? `\`${label.name}\`` : `\`${label.name}\`: ${values}`;
  });
  return `| \`${name}\` (${type}) | ${told.join('; ')} | ${help} |`;
}

const introduction = `# Metrics, logs and traces

What an alert means and what to do is in [the runbooks](runbooks/README.md); why one delivery was answered as it was, in [why.md](why.md).

## Metrics

\`GET /metrics\` on the admin port, in Prometheus' text format; with \`metrics.openMetrics: true\` in OpenMetrics, where the durations of deliveries carry exemplars (Prometheus keeps them with \`--enable-feature=exemplar-storage\`).

- Everything that can be known beforehand is there with 0 from the start, so that the first of a kind is seen by \`rate()\`.
- No path, id or address of a sender is ever a label. What is on no route is \`route="unmatched"\`. The number of series depends on the configuration alone.
- ${Object.entries(OWN)
  .map(([label, what]) => `\`${label}\`: ${what}`)
  .join('; ')}.
- Times are in seconds; the buckets of durations with the application in them reach past \`upstream.timeout\`.
- Where several gateways share a queue, each shows the whole queue: take \`max\`, not \`sum\`.`;

const logs = `## Logs

JSON lines on standard output, one for each delivery at level \`info\`:

\`\`\`json
{"level":"info","time":1790000000000,"route":"stripe","outcome":"delivered","key":"Bgahb4vZ","attempt":1,"status":200,"client":"203.0.113.7","traceId":"4bf92f3577b34da6a3ce929d0e0e4736","totalMs":21.4,"claimMs":0.9,"upstreamMs":19.8,"msg":"delivery"}
\`\`\`

| field | |
| --- | --- |
| \`key\` | the first 8 characters of the event's \`Hookonce-Key\`: a digest of service, route and identity. All deliveries of one event have the same |
| \`outcome\`, \`reason\` | what became of it, and why; [answers.md](answers.md) has each |
| \`attempt\` | 1 for the first attempt of the event; missing where none was made |
| \`totalMs\`, \`claimMs\`, \`upstreamMs\` | from the request to its answer; of that the claim, and the application |
| \`traceId\`, \`spanId\` | of the trace: the sender's, or with tracing the gateway's own; the span is there only with tracing |
| \`observed\` | on a route with \`observe: true\`, what would have become of it |

Secrets, bodies, header values and whole keys are in no line, at any level. What is passed through on no route is logged at \`debug\`.`;

const traces = `## Traces

With \`tracing.otlp\` set, spans go to that collector (OTLP over HTTP, protobuf, \`/v1/traces\`): \`receive\` for the delivery as a whole, below it \`claim\`, \`forward\` and \`complete\`; where an event is worked off a queue, \`work\` takes the place of \`receive\` and is linked to the delivery that put it there. Attributes follow OpenTelemetry's conventions for HTTP; the gateway's own begin with \`hookonce.\`. A duplicate is linked to the delivery that handled its event.

- The trace is the sender's where it sends exactly one well-formed \`traceparent\`; then the sender has decided whether it is recorded. Otherwise it is a new one, recorded with the probability \`tracing.sample\`.
- The application gets exactly one \`traceparent\`, that of \`forward\`. Without tracing, what the sender says of its trace goes on as it came. What is passed through on no route is never touched.
- The environment adds what it adds everywhere: \`OTEL_SERVICE_NAME\`, \`OTEL_RESOURCE_ATTRIBUTES\`, \`OTEL_EXPORTER_OTLP_HEADERS\`.
- A collector that is slow or gone costs spans, never deliveries; \`hookonce_trace_spans_total\` counts. At the end of the process the last spans have 2 s.`;

if (import.meta.main) writeFileSync(new URL('metrics.md', import.meta.url), await reference());
