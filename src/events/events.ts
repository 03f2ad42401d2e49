/**
 * What happens, told to operators: each business event becomes its metrics and its log line here and
 * nowhere else. Names and labels are those of docs/metrics.md; a label is never a path, an id or a URL.
 * Secrets, bodies and whole keys are never logged.
 */
import type { Logger } from 'pino';
import { shortKey } from '../core/leads.ts';
import type { Events, VoterState } from '../core/ports.ts';
import { countDelivery } from './count.ts';
import { ledgerEvents } from './ledger-events.ts';
import { FOR_A_SLOT, keys, UNMATCHED, VOTER_STATES, type ConfigRead } from './labels.ts';
import { deliveryLine, rounded } from './log.ts';
import { createMetrics, type MetricsOptions } from './metrics.ts';
import { noQueueEvents, queueEvents } from './queue-events.ts';
import { RouteSeries, type RouteLabels } from './route-series.ts';

export interface EventsOptions extends MetricsOptions {
  readonly routes: readonly RouteLabels[];
  readonly log: Logger;
  /** Whether there is a queue. */
  readonly queue?: boolean | undefined;
  /** Whether there is a ledger, and whether any route lets it decide alone; undefined: there is none. */
  readonly ledger?: { readonly decidesAlone: () => boolean } | undefined;
}

export interface AppEvents extends Events {
  /** `path`: of the file; `wallMs`: now, epoch milliseconds. */
  configRead(path: string, read: ConfigRead, wallMs: number): void;
}

export function createEvents(options: EventsOptions): AppEvents {
  const { log } = options;
  const metrics = createMetrics(options);
  const routes = new RouteSeries(metrics);
  routes.change(options.routes);
  const queue = options.queue === true ? queueEvents(options.registry, metrics.queueDepth, log) : noQueueEvents;
  queue.routes(options.routes);
  const ledger = ledgerEvents(
    options.registry,
    log,
    options.ledger !== undefined,
    options.ledger?.decidesAlone ?? never,
  );
  const states = new Map<string, VoterState>(options.nodes.map((node) => [node, 'down']));
  const quorum = Math.floor(options.nodes.length / 2) + 1;

  /** Said once, until it does again. */
  let tracesTaken = true;

  const showState = (node: string, state: VoterState): void => {
    for (const each of keys(VOTER_STATES)) metrics.voterState.set({ node, state: each }, each === state ? 1 : 0);
    const up = [...states.values()].filter((each) => each === 'up').length;
    metrics.quorum.set(up >= quorum ? 1 : 0);
    ledger.voters(up, states.size);
  };
  for (const [node, state] of states) showState(node, state);

  return {
    ...ledger,
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
    outOfOrder: (route, verdict) => metrics.outOfOrder.inc({ route, verdict }),
    unclaimed: (route, reason) => metrics.unclaimed.inc({ route, reason }),
    identityMissing: (route) => metrics.identityMissing.inc({ route }),
    otherBody: (route) => metrics.otherBodies.inc({ route }),
    elementsClaimed(route, won, leftOut) {
      metrics.elements.inc({ route, result: 'claimed' }, won);
      metrics.elements.inc({ route, result: 'left_out' }, leftOut);
    },
    undivided: (route, reason) => metrics.undivided.inc({ route, reason }),
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
    enqueued: queue.enqueued,
    jobEnded: queue.jobEnded,
    queueUp: queue.queueUp,
    queueDurable: queue.queueDurable,
    queueDepth: queue.queueDepth,
    jobStalled: queue.jobStalled,
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
    membershipConflict: (node) => metrics.membershipConflicts.inc({ node }),
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
    spansExported(count, error) {
      metrics.spans.inc({ result: error === undefined ? 'exported' : 'failed' }, count);
      if (error !== undefined && tracesTaken) log.warn({ err: error }, 'the collector does not take traces');
      tracesTaken = error === undefined;
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
          queue.routes(now);
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

const never = (): boolean => false;
