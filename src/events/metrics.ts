/** Every metric there is: its name without `hookonce_`, what it says, its labels. */
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry, type OpenMetricsContentType } from 'prom-client';
import { bucketsPast, SHORT } from './buckets.ts';
import { Exemplified } from './exemplified.ts';
import {
  CLAIM_RESULTS,
  CONFIG_READS,
  EXTENSIONS,
  FOR_A_SLOT,
  keys,
  LOCK_FAILURES,
  PROXIED,
  SPAN_RESULTS,
  UNMATCHED,
  VOTER_ERRORS,
} from './labels.ts';

export interface MetricsOptions {
  /** Names of the voters, as `voterState` uses them. */
  readonly nodes: readonly string[];
  readonly registry: Registry;
  /** Buckets of the durations reach past it, milliseconds. */
  readonly upstreamTimeoutMs: number;
  readonly version: string;
  /** Now, epoch milliseconds: the configuration that the gateway starts with was read. */
  readonly wallMs: number;
}

/** Gauges of the library with the suffix of counters, which linters refuse; they are sums of others that stay. */
const MISNAMED = ['nodejs_active_handles_total', 'nodejs_active_requests_total', 'nodejs_active_resources_total'];

const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** `openMetrics`: the format that has exemplars. */
export function createRegistry(openMetrics: boolean): Registry {
  const registry = new Registry();
  // One type for both: what differs is the text of a scrape.
  if (openMetrics) (registry as unknown as Registry<OpenMetricsContentType>).setContentType(OPEN_METRICS);
  return registry;
}

export type Metrics = ReturnType<typeof createMetrics>;

export function createMetrics({ nodes, registry, upstreamTimeoutMs, version, wallMs }: MetricsOptions) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter({ name: `hookonce_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge({ name: `hookonce_${name}`, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, labelNames: L[], buckets: number[]) =>
    new Histogram({ name: `hookonce_${name}`, help, labelNames, buckets, registers });
  /** Its samples name the trace behind them, where the format of the scrape allows it. */
  const traced = <L extends string>(name: string, help: string, labelNames: L[], buckets: number[]) =>
    new Exemplified({ name: `hookonce_${name}`, help, labelNames, buckets, registers });
  const long = bucketsPast(upstreamTimeoutMs);

  const metrics = {
    deliveries: counter('deliveries_total', 'Deliveries answered, by outcome.', ['route', 'outcome']),
    rejections: counter('rejections_total', 'Deliveries that the gateway rejected, by reason.', ['route', 'reason']),
    duration: traced('delivery_duration_seconds', 'From the request to its answer.', ['route'], long),
    overhead: histogram(
      'overhead_seconds',
      'Of a delivery, what was not the application.',
      ['route'],
      [...SHORT, 2.5, 5, 10],
    ),
    upstream: traced(
      'upstream_duration_seconds',
      'The application, by class of its status.',
      ['route', 'code_class'],
      long,
    ),
    claim: histogram('claim_duration_seconds', 'Claims on the quorum, by result.', ['result'], SHORT),
    lockFailures: counter('lock_failures_total', 'Claims not won and locks lost, by reason.', ['reason']),
    lockExtensions: counter('lock_extensions_total', 'Beats of the watchdog, by result.', ['result']),
    repeated: counter('attempts_repeated_total', 'Attempts above 1 that were forwarded.', ['route']),
    outOfOrder: counter(
      'out_of_order_total',
      'Events older than others of their resource, or perhaps; by what became of them.',
      ['route', 'verdict'],
    ),
    unclaimed: counter('unclaimed_total', 'Deliveries that went on without a claim, by reason.', ['route', 'reason']),
    identityMissing: counter('identity_missing_total', 'Deliveries that nothing named.', ['route']),
    otherBodies: counter('other_bodies_total', 'Events handled before that came again with another body.', ['route']),
    elements: counter('elements_total', 'Elements of deliveries that are claimed one by one, by what became of them.', [
      'route',
      'result',
    ]),
    undivided: counter(
      'undivided_total',
      'Deliveries handled as a whole although the route claims each element, by reason.',
      ['route', 'reason'],
    ),
    replaysBlocked: counter('replays_blocked_total', 'Content that came again under another id.', ['route']),
    completions: gauge('completions_pending', 'Done events that a quorum has not acknowledged yet.'),
    voterState: gauge('voter_state', 'State of each voter: 1 for the current one.', ['node', 'state']),
    voterErrors: counter('voter_errors_total', 'Voters that gave no usable answer, by class.', ['node', 'class']),
    memoryLost: counter(
      'memory_lost_total',
      'Voters that count again although no quorum knew what they had forgotten.',
      ['node'],
    ),
    membershipConflicts: counter(
      'membership_conflicts_total',
      'Greetings of a voter that another gateway uses with other redis.nodes.',
      ['node'],
    ),
    unsafeEviction: gauge('voter_unsafe_eviction', '1 for voters that may forget events when their memory is full.', [
      'node',
    ]),
    evictedKeys: gauge('voter_evicted_keys', 'Keys that a voter has dropped because its memory was full.', ['node']),
    voterCommand: histogram('voter_command_seconds', 'One batch on a voter.', ['node'], SHORT),
    quorum: gauge('quorum_available', '1 while a majority of the voters counts.'),
    inFlight: gauge('in_flight', 'Deliveries not answered yet.', ['route']),
    waiting: gauge('waiting', 'Copies that wait for the outcome of an event in flight.', ['route']),
    queueDepth: gauge(
      'queue_depth',
      'What waits: for a place at the application (upstream), or in the queue (async).',
      ['queue', 'state'],
    ),
    failures: counter('upstream_failures_total', 'Deliveries without an answer of the application, by reason.', [
      'route',
      'reason',
    ]),
    buffered: gauge('buffered_bytes', 'Bytes of bodies in memory, of deliveries and replies.'),
    secretUsed: counter('secret_used_total', 'Signatures that held, by the secret that made them.', [
      'route',
      'secret',
    ]),
    observed: counter(
      'observed_total',
      'Deliveries forwarded that would have been stopped, by what they would have become.',
      ['route', 'outcome'],
    ),
    spans: counter('trace_spans_total', 'Spans handed to the collector of traces, by result.', ['result']),
    reloads: counter('config_reloads_total', 'Times that the configuration was read anew, by result.', ['result']),
    reloadSuccessful: gauge(
      'config_last_reload_successful',
      '1 unless the configuration as it lies there was refused.',
    ),
    reloadTimestamp: gauge(
      'config_last_reload_timestamp_seconds',
      'When the configuration was last read and found right.',
    ),
    restartNeeded: gauge(
      'config_restart_needed',
      '1 while the configuration says something that only a restart brings.',
    ),
  };
  gauge('build_info', 'The version that runs.', ['version']).set({ version }, 1);
  collectDefaultMetrics({ register: registry });
  for (const name of MISNAMED) registry.removeSingleMetric(name);

  for (const result of keys(CONFIG_READS)) metrics.reloads.inc({ result }, 0);
  metrics.reloadSuccessful.set(1);
  metrics.reloadTimestamp.set(wallMs / 1000);
  for (const outcome of ['rejected', ...keys(PROXIED)]) metrics.deliveries.inc({ route: UNMATCHED, outcome }, 0);
  for (const reason of ['no_route', 'bad_request', 'method']) metrics.rejections.inc({ route: UNMATCHED, reason }, 0);
  metrics.inFlight.set({ route: UNMATCHED }, 0);
  metrics.queueDepth.set(FOR_A_SLOT, 0);
  for (const reason of keys(LOCK_FAILURES)) metrics.lockFailures.inc({ reason }, 0);
  for (const result of keys(EXTENSIONS)) metrics.lockExtensions.inc({ result }, 0);
  for (const result of keys(SPAN_RESULTS)) metrics.spans.inc({ result }, 0);
  for (const result of keys(CLAIM_RESULTS)) metrics.claim.zero({ result });
  for (const node of nodes) {
    metrics.voterCommand.zero({ node });
    metrics.memoryLost.inc({ node }, 0);
    metrics.membershipConflicts.inc({ node }, 0);
    for (const name of VOTER_ERRORS) metrics.voterErrors.inc({ node, class: name }, 0);
  }
  return metrics;
}
