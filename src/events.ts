/**
 * What happens, told to operators: each business event becomes its metrics and its log line here and
 * nowhere else. Names and labels are those of design section 11; a label is never a path, an id or a URL.
 * Secrets, bodies and whole keys are never logged.
 */
import { pino, type DestinationStream, type Logger } from 'pino';
import { collectDefaultMetrics, Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { OutcomeKind, RejectReason } from './core/delivery.ts';
import type { ClaimResult, DeliveryReport, Events, LockFailure, VoterState } from './core/ports.ts';

export interface EventsOptions {
  /** Names of the configured routes. */
  readonly routes: readonly string[];
  /** Names of the voters, as `voterState` uses them. */
  readonly nodes: readonly string[];
  readonly log: Logger;
  readonly registry: Registry;
  /** Buckets of the durations reach past it, milliseconds. */
  readonly upstreamTimeoutMs: number;
  readonly version: string;
}

/** JSON lines to standard output; the level is a pino level. */
export function createLog(level: string, stream?: DestinationStream): Logger {
  const options = { level, base: null, formatters: { level: (label: string) => ({ level: label }) } };
  return stream === undefined ? pino(options) : pino(options, stream);
}

export function createEvents(options: EventsOptions): Events {
  const { log } = options;
  const metrics = createMetrics(options);
  const states = new Map<string, VoterState>(options.nodes.map((node) => [node, 'down']));
  const quorum = Math.floor(options.nodes.length / 2) + 1;

  const showState = (node: string, state: VoterState): void => {
    for (const each of keys(VOTER_STATES)) metrics.voterState.set({ node, state: each }, each === state ? 1 : 0);
    const up = [...states.values()].filter((each) => each === 'up').length;
    metrics.quorum.set(up >= quorum ? 1 : 0);
  };
  for (const [node, state] of states) showState(node, state);

  return {
    deliveryStarted: (route) => metrics.inFlight.inc({ route }),
    deliveryEnded(report) {
      metrics.inFlight.dec({ route: report.route });
      countDelivery(metrics, report);
      log.info(deliveryLine(report), 'delivery');
    },
    claimEnded: (result, ms) => metrics.claim.observe({ result }, ms / 1000),
    lockFailed: (reason) => metrics.lockFailures.inc({ reason }),
    lockExtended: (result) => metrics.lockExtensions.inc({ result }),
    attemptRepeated: (route) => metrics.repeated.inc({ route }),
    waiting: (route, change) => metrics.waiting.inc({ route }, change),
    completionPending: (change) => metrics.completions.inc(change),
    completionGivenUp(key, why) {
      log.error({ key: shortKey(key), why }, 'a completion was given up: a copy of this event may be forwarded again');
    },
    lateAnswer(route, status) {
      if (status === undefined) log.warn({ route }, 'an uncertain delivery ended without an answer');
      else log.info({ route, status }, 'late answer of the application');
    },
    buffered: (bytes) => metrics.buffered.set(bytes),
    voterState(node, state) {
      const before = states.get(node);
      states.set(node, state);
      showState(node, state);
      if (before !== state) log[state === 'up' ? 'info' : 'warn']({ node, state, before }, 'voter changed its state');
    },
    voterError(node, errorClass) {
      metrics.voterErrors.inc({ node, class: errorClass });
      log.debug({ node, class: errorClass }, 'voter error');
    },
    voterCommand: (node, ms) => metrics.voterCommand.observe({ node }, ms / 1000),
    warn(message, details = {}) {
      const { error, ...rest } = details;
      log.warn(error === undefined ? rest : { ...rest, err: error }, message);
    },
  };
}

type Metrics = ReturnType<typeof createMetrics>;

function countDelivery(metrics: Metrics, report: DeliveryReport): void {
  const { route, outcome, reason, status, totalMs, upstreamMs } = report;
  metrics.deliveries.inc({ route, outcome });
  if (outcome === 'rejected') metrics.rejections.inc({ route, reason: reason ?? 'bad_request' });
  metrics.duration.observe({ route }, totalMs / 1000);
  metrics.overhead.observe({ route }, Math.max(0, totalMs - (upstreamMs ?? 0)) / 1000);
  if (upstreamMs !== undefined)
    metrics.upstream.observe({ route, code_class: `${Math.floor(status / 100)}xx` }, upstreamMs / 1000);
}

function deliveryLine(report: DeliveryReport): Record<string, unknown> {
  const { key, totalMs, claimMs, upstreamMs, ...rest } = report;
  return {
    ...rest,
    ...(key === undefined ? {} : { key: shortKey(key) }),
    totalMs: rounded(totalMs),
    ...(claimMs === undefined ? {} : { claimMs: rounded(claimMs) }),
    ...(upstreamMs === undefined ? {} : { upstreamMs: rounded(upstreamMs) }),
  };
}

/** Enough of a key to find it again, not enough to be one. */
const shortKey = (key: string): string => key.slice(0, 8);
const rounded = (ms: number): number => Math.round(ms * 100) / 100;

/** The label values of closed unions, complete by type: series are there with 0 before anything happens. */
const OUTCOMES: Record<OutcomeKind, true> = {
  delivered: true,
  refused: true,
  duplicate: true,
  'in-progress': true,
  rejected: true,
  unreachable: true,
  uncertain: true,
  unavailable: true,
  overloaded: true,
};
const REASONS: Record<RejectReason | 'method', true> = {
  bad_signature: true,
  missing_signature: true,
  stale_signature: true,
  no_identity: true,
  too_large: true,
  unsupported_coding: true,
  bad_request: true,
  method: true,
};
const LOCK_FAILURES: Record<LockFailure, true> = {
  held: true,
  split: true,
  no_quorum: true,
  expired: true,
  lost: true,
};
const EXTENSIONS: Record<Parameters<Events['lockExtended']>[0], true> = { ok: true, failed: true, lost: true };
const CLAIM_RESULTS: Record<ClaimResult['kind'], true> = { won: true, done: true, held: true, unavailable: true };
const VOTER_STATES: Record<VoterState, true> = { up: true, down: true, held: true };

function keys<K extends string>(of: Record<K, true>): K[] {
  return Object.keys(of) as K[];
}

const SHORT = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
const LONG = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600];

/** Buckets in seconds up to the first that leaves room above the timeout for what comes around it. */
function bucketsPast(timeoutMs: number): number[] {
  const enough = LONG.findIndex((bound) => bound >= (1.5 * timeoutMs) / 1000);
  return enough === -1 ? LONG : LONG.slice(0, enough + 1);
}

function createMetrics({ routes, nodes, registry, upstreamTimeoutMs, version }: EventsOptions) {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: L[]) =>
    new Counter({ name: `hookonce_${name}`, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge({ name: `hookonce_${name}`, help, labelNames, registers });
  const histogram = <L extends string>(name: string, help: string, labelNames: L[], buckets: number[]) =>
    new Histogram({ name: `hookonce_${name}`, help, labelNames, buckets, registers });
  const long = bucketsPast(upstreamTimeoutMs);

  const metrics = {
    deliveries: counter('deliveries_total', 'Deliveries answered, by outcome.', ['route', 'outcome']),
    rejections: counter('rejections_total', 'Deliveries that the gateway rejected, by reason.', ['route', 'reason']),
    duration: histogram('delivery_duration_seconds', 'From the request to its answer.', ['route'], long),
    overhead: histogram(
      'overhead_seconds',
      'Of a delivery, what was not the application.',
      ['route'],
      [...SHORT, 2.5, 5, 10],
    ),
    upstream: histogram(
      'upstream_duration_seconds',
      'The application, by class of its status.',
      ['route', 'code_class'],
      long,
    ),
    claim: histogram('claim_duration_seconds', 'Claims on the quorum, by result.', ['result'], SHORT),
    lockFailures: counter('lock_failures_total', 'Claims not won and locks lost, by reason.', ['reason']),
    lockExtensions: counter('lock_extensions_total', 'Beats of the watchdog, by result.', ['result']),
    repeated: counter('attempts_repeated_total', 'Attempts above 1 that were forwarded.', ['route']),
    completions: gauge('completions_pending', 'Done events that a quorum has not acknowledged yet.'),
    voterState: gauge('voter_state', 'State of each voter: 1 for the current one.', ['node', 'state']),
    voterErrors: counter('voter_errors_total', 'Voters that gave no usable answer, by class.', ['node', 'class']),
    voterCommand: histogram('voter_command_seconds', 'One batch on a voter.', ['node'], SHORT),
    quorum: gauge('quorum_available', '1 while a majority of the voters counts.'),
    inFlight: gauge('in_flight', 'Deliveries not answered yet.', ['route']),
    waiting: gauge('waiting', 'Copies that wait for the outcome of an event in flight.', ['route']),
    buffered: gauge('buffered_bytes', 'Bytes of delivery bodies in memory.'),
  };
  gauge('build_info', 'The version that runs.', ['version']).set({ version }, 1);
  collectDefaultMetrics({ register: registry });

  for (const route of routes) {
    for (const outcome of keys(OUTCOMES)) metrics.deliveries.inc({ route, outcome }, 0);
    for (const reason of keys(REASONS)) metrics.rejections.inc({ route, reason }, 0);
    metrics.repeated.inc({ route }, 0);
    metrics.inFlight.set({ route }, 0);
    metrics.waiting.set({ route }, 0);
    metrics.duration.zero({ route });
    metrics.overhead.zero({ route });
  }
  metrics.deliveries.inc({ route: 'unmatched', outcome: 'rejected' }, 0);
  for (const reason of ['no_route', 'bad_request']) metrics.rejections.inc({ route: 'unmatched', reason }, 0);
  for (const reason of keys(LOCK_FAILURES)) metrics.lockFailures.inc({ reason }, 0);
  for (const result of keys(EXTENSIONS)) metrics.lockExtensions.inc({ result }, 0);
  for (const result of keys(CLAIM_RESULTS)) metrics.claim.zero({ result });
  for (const node of nodes) metrics.voterCommand.zero({ node });
  return metrics;
}
