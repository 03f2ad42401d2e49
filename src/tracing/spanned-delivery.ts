/** One delivery under way, and the spans of its steps. */
import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Span,
  type Tracer,
} from '@opentelemetry/api';
import type { Done, OutcomeKind } from '../core/delivery.ts';
import type { AppResult, Claims, DeliveryReport, DeliveryTrace, Traceable, Upstream } from '../core/ports.ts';
import { RANDOM, traceparentOf, withTraceparent, type TraceContext } from '../core/trace-context.ts';
import { SpannedClaims } from './spanned-claims.ts';

interface Surroundings {
  /** What the delivery's trace was continued from; undefined: it is a new one. */
  readonly parent: TraceContext | undefined;
  readonly applicationUrl: string;
  /** Of the route; undefined on none. */
  readonly path: string | undefined;
}

export class SpannedDelivery implements DeliveryTrace {
  readonly #tracer: Tracer;
  readonly #span: Span;
  readonly #around: Surroundings;
  readonly #context: Context;

  constructor(tracer: Tracer, span: Span, around: Surroundings) {
    this.#tracer = tracer;
    this.#span = span;
    this.#around = around;
    this.#context = trace.setSpan(ROOT_CONTEXT, span);
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get spanId(): string {
    return this.#span.spanContext().spanId;
  }

  get traceparent(): string {
    return this.#traceparentOf(this.#span);
  }

  follow<G extends Traceable>(gate: G): G {
    const claims: Claims = new SpannedClaims(gate.claims, (step) => this.#step(step, SpanKind.INTERNAL));
    const upstream: Upstream = {
      send: async (request, mayStart) => {
        const span = this.#step('forward', SpanKind.CLIENT);
        span.setAttributes(this.#whereTo(request.method));
        const headers = withTraceparent(request.headers, this.#traceparentOf(span), this.#around.parent !== undefined);
        const result = await gate.upstream.send({ ...request, headers }, mayStart);
        tellForward(span, result);
        span.end();
        return result;
      },
    };
    return { ...gate, claims, upstream };
  }

  end({ outcome, reason, status, attempt, key }: DeliveryReport, done: Done | undefined): void {
    const span = this.#span;
    span.setAttributes({
      'hookonce.outcome': outcome,
      ...(status > 0 && { 'http.response.status_code': status }),
      ...(reason !== undefined && { 'hookonce.reason': reason }),
      ...(attempt !== undefined && { 'hookonce.attempt': attempt }),
      ...(key !== undefined && { 'hookonce.key': key.slice(0, 8) }),
    });
    if (status >= 500 || (status === 0 && !DONE.includes(outcome))) fail(span, reason ?? outcome);
    if (done !== undefined && done.traceId !== '') linkTo(span, done);
    span.end();
  }

  #step(name: string, kind: SpanKind): Span {
    return this.#tracer.startSpan(name, { kind }, this.#context);
  }

  /** Of what the sender said about the trace, that its id is random stays true. */
  #traceparentOf(span: Span): string {
    const { traceId, spanId, traceFlags } = span.spanContext();
    const kept = (this.#around.parent?.flags ?? RANDOM) & RANDOM;
    return traceparentOf({ traceId, spanId, flags: (traceFlags & TraceFlags.SAMPLED) | kept });
  }

  #whereTo(method: string): Record<string, string | number> {
    const { applicationUrl, path } = this.#around;
    const known = { 'http.request.method': method };
    if (applicationUrl.startsWith('unix:')) return { ...known, 'server.address': applicationUrl.slice(5) };
    const { hostname, port, protocol } = new URL(applicationUrl);
    return {
      ...known,
      'server.address': hostname,
      'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
      ...(path !== undefined && !path.includes('*') && { 'url.full': `${applicationUrl}${path}` }),
    };
  }
}

/** Of work off the queue, which answers nobody: what ends well. */
const DONE: readonly OutcomeKind[] = ['delivered', 'duplicate', 'accepted', 'stale'];

/** To the delivery that handled the event; without the id of its span there is nothing that a link could hold on to. */
function linkTo(span: Span, { traceId, spanId }: Done): void {
  span.setAttribute('hookonce.handled_by.trace_id', traceId);
  if (spanId !== undefined)
    span.addLink({
      context: { traceId, spanId, traceFlags: TraceFlags.NONE, isRemote: true },
      attributes: { 'hookonce.link': 'handled_by' },
    });
}

function tellForward(span: Span, result: AppResult): void {
  switch (result.kind) {
    case 'answered': {
      const { status } = result.reply;
      span.setAttribute('http.response.status_code', status);
      if (status >= 400) fail(span, String(status));
      return;
    }
    case 'never-sent':
      return fail(span, result.why);
    case 'unknown':
      return fail(span, result.how);
  }
}

function fail(span: Span, type: string): void {
  span.setAttribute('error.type', type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
