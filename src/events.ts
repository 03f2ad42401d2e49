/**
 * What happens, told to operators: each business event becomes its metrics and its log line here and
 * nowhere else. Names and labels are those of design section 11; a label is never a path, an id or a URL.
 * Secrets, bodies and whole keys are never logged.
 */
import { pino, type DestinationStream, type Logger } from 'pino';
import { collectDefaultMetrics, Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { OutcomeKind, RejectReason } from './core/delivery.ts';
import { STOPPED } from './core/observe.ts';
import type { Route } from './core/route.ts';
import type { ClaimResult, DeliveryReport, Events, LockFailure, ProxyReport, VoterState } from './core/ports.ts';

export interface EventsOptions {
  readonly routes: readonly RouteLabels[];
  /** Names of the voters, as `voterState` uses them. */
  readonly nodes: readonly string[];
  readonly log: Logger;
  readonly registry: Registry;
  /** Buckets of the durations reach past it, milliseconds. */
  readonly upstreamTimeoutMs: number;
  readonly version: string;
  /** Now, epoch milliseconds: the configuration that the gateway starts with was read. */
  readonly wallMs: number;
}

/** What of a route becomes labels. */
export type RouteLabels = Pick<Route, 'name' | 'secretNames'>;

/** What became of the configuration when it was read anew. */
export type ConfigRead =
  /** `waiting`: settings that changed and that only a restart brings. */
  | {
      readonly kind: 'applied';
      readonly routes: readonly RouteLabels[];
      readonly waiting: readonly string[];
      readonly warnings: readonly string[];
    }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'refused'; readonly complaints: readonly string[] };

export interface AppEvents extends Events {
  /** `path`: of the file; `wallMs`: now, epoch milliseconds. */
  configRead(path: string, read: ConfigRead, wallMs: number): void;
}

/** JSON lines to standard output; the level is a pino level. */
export function createLog(level: string, stream?: DestinationStream): Logger {
  const options = { level, base: null, formatters: { level: (label: string) => ({ level: label }) } };
  return stream === undefined ? pino(options) : pino(options, stream);
}

export function createEvents(options: EventsOptions): AppEvents {
  const { log } = options;
  const metrics = createMetrics(options);
  const routes = new RouteSeries(metrics);
  routes.change(options.routes);
  const states = new Map<string, VoterState>(options.nodes.map((node) => [node, 'down']));
  const quorum = Math.floor(options.nodes.length / 2) + 1;

  const showState = (node: string, state: VoterState): void => {
    for (const each of keys(VOTER_STATES)) metrics.voterState.set({ node, state: each }, each === state ? 1 : 0);
    const up = [...states.values()].filter((each) => each === 'up').length;
    metrics.quorum.set(up >= quorum ? 1 : 0);
  };
  for (const [node, state] of states) showState(node, state);

  return {
    deliveryStarted(route) {
      metrics.inFlight.inc({ route });
      routes.entered(route);
    },
    deliveryEnded(report) {
      metrics.inFlight.dec({ route: report.route });
      countDelivery(metrics, report);
      routes.left(report.route);
      log.info(deliveryLine(report), 'delivery');
    },
    proxyStarted: () => metrics.inFlight.inc({ route: UNMATCHED }),
    proxyEnded(report) {
      metrics.inFlight.dec({ route: UNMATCHED });
      metrics.deliveries.inc({ route: UNMATCHED, outcome: report.outcome });
      // One line for each would be the application's whole access log.
      log.debug({ ...report, totalMs: rounded(report.totalMs) }, 'passed through');
    },
    claimEnded: (result, ms) => metrics.claim.observe({ result }, ms / 1000),
    lockFailed: (reason) => metrics.lockFailures.inc({ reason }),
    lockExtended: (result) => metrics.lockExtensions.inc({ result }),
    attemptRepeated: (route) => metrics.repeated.inc({ route }),
    identityMissing: (route) => metrics.identityMissing.inc({ route }),
    otherBody: (route) => metrics.otherBodies.inc({ route }),
    replayBlocked: (route) => metrics.replaysBlocked.inc({ route }),
    secretUsed: (route, secret) => routes.used(route, secret),
    observed: (route, outcome) => metrics.observed.inc({ route, outcome }),
    waiting: (route, change) => metrics.waiting.inc({ route }, change),
    slotsWaiting: (count) => metrics.queueDepth.set(FOR_A_SLOT, count),
    completionPending: (change) => metrics.completions.inc(change),
    completionGivenUp(key, why) {
      log.error({ key: shortKey(key), why }, 'a completion was given up: a copy of this event may be forwarded again');
    },
    lateAnswer(route, status) {
      if (status === undefined) log.warn({ route }, 'an uncertain delivery ended without an answer');
      else log.info({ route, status }, 'late answer of the application');
    },
    buffered: (bytes) => metrics.buffered.set(bytes),
    memoryLost(node, wallMs) {
      metrics.memoryLost.inc({ node });
      log.error(
        { node, beforeMs: wallMs },
        'a majority of the voters lost its memory: events handled before this time may be forwarded again',
      );
    },
    voterState(node, state, details) {
      const before = states.get(node);
      states.set(node, state);
      showState(node, state);
      if (before === state && state !== 'held') return;
      const { why, leftMs, lastedMs } = details ?? {};
      const more = {
        ...(why !== undefined && { why }),
        ...(leftMs !== undefined && { leftMs }),
        ...(lastedMs !== undefined && { lastedMs: rounded(lastedMs) }),
      };
      log[state === 'up' ? 'info' : 'warn']({ node, state, before, ...more }, 'voter changed its state');
    },
    voterEviction(node, policy, evictedKeys) {
      const unsafe = policy !== undefined && policy !== 'noeviction';
      metrics.unsafeEviction.set({ node }, unsafe ? 1 : 0);
      if (evictedKeys !== undefined) metrics.evictedKeys.set({ node }, evictedKeys);
      if (unsafe)
        log.warn(
          { node, policy, evictedKeys },
          'a voter drops keys when its memory is full: it needs maxmemory-policy noeviction',
        );
    },
    voterError(node, errorClass) {
      metrics.voterErrors.inc({ node, class: errorClass });
      log.debug({ node, class: errorClass }, 'voter error');
    },
    voterCommand: (node, ms) => metrics.voterCommand.observe({ node }, ms / 1000),
    configRead(path, read, wallMs) {
      metrics.reloads.inc({ result: read.kind });
      metrics.reloadSuccessful.set(read.kind === 'refused' ? 0 : 1);
      if (read.kind !== 'refused') metrics.reloadTimestamp.set(wallMs / 1000);
      switch (read.kind) {
        case 'refused':
          return log.error(
            { path, complaints: read.complaints },
            'the configuration is refused as a whole; the one before stays',
          );
        case 'unchanged':
          return log.debug({ path }, 'the configuration is what it was');
        case 'applied': {
          const { routes: now, waiting, warnings } = read;
          routes.change(now);
          metrics.restartNeeded.set(waiting.length > 0 ? 1 : 0);
          log.info(
            { path, routes: now.map(({ name }) => name), ...(warnings.length > 0 && { warnings }) },
            'configuration reloaded',
          );
          if (waiting.length > 0)
            log.warn({ path, settings: waiting }, 'these settings need a restart, and stay as they were until then');
        }
      }
    },
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
  if (outcome === 'unreachable' || outcome === 'uncertain') metrics.failures.inc({ route, reason: reason ?? 'error' });
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
  handshake: true,
  unreachable: true,
  uncertain: true,
  unavailable: true,
  overloaded: true,
};
const REASONS: Record<RejectReason | 'method' | 'upgrade' | 'slow', true> = {
  bad_signature: true,
  missing_signature: true,
  stale_signature: true,
  no_identity: true,
  other_body: true,
  too_large: true,
  unsupported_coding: true,
  bad_request: true,
  method: true,
  upgrade: true,
  slow: true,
};
/** Why there was no answer of the application; `error` is a bug of the gateway. */
const FAILURES = {
  connect: true,
  connect_timeout: true,
  headers_timeout: true,
  timeout: true,
  reset: true,
  error: true,
} as const;
const PROXIED: Record<ProxyReport['outcome'], true> = {
  proxied: true,
  unreachable: true,
  uncertain: true,
  gone: true,
  overloaded: true,
  unfit: true,
};
/** The route label of whatever is on no route: a path is never a label. */
const UNMATCHED = 'unmatched';
const FOR_A_SLOT = { queue: 'upstream', state: 'waiting' };
const LOCK_FAILURES: Record<LockFailure, true> = {
  held: true,
  split: true,
  no_quorum: true,
  expired: true,
  lost: true,
};
const EXTENSIONS: Record<Parameters<Events['lockExtended']>[0], true> = { ok: true, failed: true, lost: true };
const CLAIM_RESULTS: Record<ClaimResult['kind'], true> = { won: true, done: true, held: true, unavailable: true };
const CONFIG_READS: Record<ConfigRead['kind'], true> = { applied: true, unchanged: true, refused: true };
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

function createMetrics({ nodes, registry, upstreamTimeoutMs, version, wallMs }: EventsOptions) {
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
    identityMissing: counter('identity_missing_total', 'Deliveries that nothing named.', ['route']),
    otherBodies: counter('other_bodies_total', 'Events handled before that came again with another body.', ['route']),
    replaysBlocked: counter('replays_blocked_total', 'Content that came again under another id.', ['route']),
    completions: gauge('completions_pending', 'Done events that a quorum has not acknowledged yet.'),
    voterState: gauge('voter_state', 'State of each voter: 1 for the current one.', ['node', 'state']),
    voterErrors: counter('voter_errors_total', 'Voters that gave no usable answer, by class.', ['node', 'class']),
    memoryLost: counter(
      'memory_lost_total',
      'Voters that count again although no quorum knew what they had forgotten.',
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
    queueDepth: gauge('queue_depth', 'What waits: for a place at the application.', ['queue', 'state']),
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

  for (const result of keys(CONFIG_READS)) metrics.reloads.inc({ result }, 0);
  metrics.reloadSuccessful.set(1);
  metrics.reloadTimestamp.set(wallMs / 1000);
  for (const outcome of ['rejected', ...keys(PROXIED)]) metrics.deliveries.inc({ route: UNMATCHED, outcome }, 0);
  for (const reason of ['no_route', 'bad_request', 'method']) metrics.rejections.inc({ route: UNMATCHED, reason }, 0);
  metrics.inFlight.set({ route: UNMATCHED }, 0);
  metrics.queueDepth.set(FOR_A_SLOT, 0);
  for (const reason of keys(LOCK_FAILURES)) metrics.lockFailures.inc({ reason }, 0);
  for (const result of keys(EXTENSIONS)) metrics.lockExtensions.inc({ result }, 0);
  for (const result of keys(CLAIM_RESULTS)) metrics.claim.zero({ result });
  for (const node of nodes) {
    metrics.voterCommand.zero({ node });
    metrics.memoryLost.inc({ node }, 0);
  }
  return metrics;
}

/**
 * The series of routes that come and go: there with 0 as soon as a route is configured, gone once it is not and
 * the last of its deliveries has ended.
 */
class RouteSeries {
  readonly #metrics: Metrics;
  /** What the secrets of each route are called; none once it is not configured any more. */
  readonly #shown = new Map<string, readonly string[]>();
  readonly #gone = new Set<string>();
  readonly #inside = new Map<string, number>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  change(routes: readonly RouteLabels[]): void {
    const next = new Map(routes.map(({ name, secretNames = [] }) => [name, secretNames]));
    for (const [route, secrets] of this.#shown) {
      for (const secret of secrets)
        if (next.get(route)?.includes(secret) !== true) this.#metrics.secretUsed.remove({ route, secret });
      if (next.has(route)) continue;
      this.#shown.set(route, []);
      this.#gone.add(route);
      this.#forgetIfOver(route);
    }
    for (const [route, secrets] of next) {
      this.#gone.delete(route);
      if (!this.#shown.has(route)) this.#show(route);
      this.#shown.set(route, secrets);
      for (const secret of secrets) this.#metrics.secretUsed.inc({ route, secret }, 0);
    }
  }

  entered(route: string): void {
    this.#inside.set(route, (this.#inside.get(route) ?? 0) + 1);
    // Its body came after the route had gone.
    if (!this.#shown.has(route) && route !== UNMATCHED) {
      this.#shown.set(route, []);
      this.#gone.add(route);
    }
  }

  left(route: string): void {
    const inside = (this.#inside.get(route) ?? 1) - 1;
    if (inside > 0) this.#inside.set(route, inside);
    else this.#inside.delete(route);
    this.#forgetIfOver(route);
  }

  /** A secret that was taken away while a delivery came counts no more. */
  used(route: string, secret: string): void {
    if (this.#shown.get(route)?.includes(secret) === true) this.#metrics.secretUsed.inc({ route, secret });
  }

  #show(route: string): void {
    for (const [metric, labels] of seriesOf(this.#metrics)) metric.inc({ route, ...labels }, 0);
    for (const metric of [this.#metrics.duration, this.#metrics.overhead]) metric.zero({ route });
  }

  #forgetIfOver(route: string): void {
    if (!this.#gone.has(route) || this.#inside.has(route)) return;
    this.#gone.delete(route);
    this.#shown.delete(route);
    for (const [metric, labels] of seriesOf(this.#metrics)) metric.remove({ route, ...labels });
    for (const metric of [this.#metrics.duration, this.#metrics.overhead]) metric.remove({ route });
    for (const code_class of ['1xx', '2xx', '3xx', '4xx', '5xx']) this.#metrics.upstream.remove({ route, code_class });
  }
}

/** What each route has: the metric, and its labels beside the route. */
function seriesOf(metrics: Metrics): (readonly [Counter | Gauge, Readonly<Record<string, string>>])[] {
  const {
    deliveries,
    rejections,
    failures,
    observed,
    repeated,
    identityMissing,
    otherBodies,
    replaysBlocked,
    inFlight,
    waiting,
  } = metrics;
  return [
    ...keys(OUTCOMES).map((outcome) => [deliveries, { outcome }] as const),
    ...keys(REASONS).map((reason) => [rejections, { reason }] as const),
    ...keys(FAILURES).map((reason) => [failures, { reason }] as const),
    ...STOPPED.map((outcome) => [observed, { outcome }] as const),
    ...[repeated, identityMissing, otherBodies, replaysBlocked, inFlight, waiting].map(
      (metric) => [metric, {}] as const,
    ),
  ];
}
