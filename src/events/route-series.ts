/** The series that each route has. */
import type { Counter, Gauge } from 'prom-client';
import { STOPPED } from '../core/observe.ts';
import type { Route } from '../core/route.ts';
import {
  ELEMENTS,
  FAILURES,
  ORDER_VERDICTS,
  OUTCOMES,
  REASONS,
  UNCLAIMED,
  UNDIVIDED,
  UNMATCHED,
  keys,
} from './labels.ts';
import type { Metrics } from './metrics.ts';

/** What of a route becomes labels. */
export type RouteLabels = Pick<Route, 'name' | 'secretNames'> & { readonly async?: unknown };

/**
 * The series of routes that come and go: there with 0 as soon as a route is configured, gone once it is not and
 * the last of its deliveries has ended.
 */
export class RouteSeries {
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
    unclaimed,
    outOfOrder,
    identityMissing,
    otherBodies,
    replaysBlocked,
    elements,
    undivided,
    inFlight,
    waiting,
  } = metrics;
  return [
    ...keys(OUTCOMES).map((outcome) => [deliveries, { outcome }] as const),
    ...keys(REASONS).map((reason) => [rejections, { reason }] as const),
    ...keys(FAILURES).map((reason) => [failures, { reason }] as const),
    ...keys(UNCLAIMED).map((reason) => [unclaimed, { reason }] as const),
    ...keys(ORDER_VERDICTS).map((verdict) => [outOfOrder, { verdict }] as const),
    ...STOPPED.map((outcome) => [observed, { outcome }] as const),
    ...keys(ELEMENTS).map((result) => [elements, { result }] as const),
    ...keys(UNDIVIDED).map((reason) => [undivided, { reason }] as const),
    ...[repeated, identityMissing, otherBodies, replaysBlocked, inFlight, waiting].map(
      (metric) => [metric, {}] as const,
    ),
  ];
}
