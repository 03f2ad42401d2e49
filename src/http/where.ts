/**
 * Where a request belongs: to a route, to the application, or nowhere.
 *
 * What is on no route goes through to the application as it is (`unmatched: proxy`). So do, on a route, the
 * methods that only ask: with GET some senders make sure of an endpoint. Everything else on a route is a
 * delivery; a header that lets the application take GET for POST would get past that, and is refused.
 */
import type { IncomingMessage } from 'node:http';
import { allHeaders, header } from '../core/delivery.ts';
import type { Route } from '../core/route.ts';
import { own, type Answer } from './answer.ts';
import { names } from './lines.ts';
import { hasBody } from './proxy-lines.ts';
import { createRouter, originForm } from './routing.ts';

export type Where =
  | { readonly kind: 'delivery'; readonly route: Route; readonly target: string }
  /** `upgrade`: a protocol that the connection may change to. */
  | { readonly kind: 'proxied'; readonly target: string; readonly upgrade: string | undefined }
  /** `last`: the connection ends with it. */
  | {
      readonly kind: 'refused';
      readonly route: string;
      readonly answer: Answer;
      readonly reason: string;
      readonly last: boolean;
    };

/** The label of whatever belongs to no route; a path is never a label. */
const UNMATCHED = 'unmatched';

const DELIVERIES = ['POST', 'PUT', 'PATCH', 'DELETE'];
const QUESTIONS = ['GET', 'HEAD', 'OPTIONS'];
/** Headers by which frameworks take a request for one of another method. */
const METHOD_OVERRIDES = ['x-http-method-override', 'x-http-method', 'x-method-override'];
/** Headers by which frameworks take a request for one of another path. */
const PATH_OVERRIDES = ['x-original-url', 'x-rewrite-url'];
/** Protocols that carry requests in turn, which would get past every route (RFC 9110 7.8 allows to ignore them). */
const CARRIES_REQUESTS = /^(h2c?|http|tls)\b/i;

export function createWhere(
  routes: readonly Route[],
  unmatched: 'proxy' | 'reject',
): (req: IncomingMessage, rawTarget: string) => Where {
  const router = createRouter(routes);
  const proxied = (target: string, upgrade?: string): Where =>
    unmatched === 'proxy' ? { kind: 'proxied', target, upgrade } : refused(UNMATCHED, NOT_FOUND, 'no_route');

  return (req, rawTarget) => {
    const method = req.method!;
    if (!hostIsRight(req)) return refused(UNMATCHED, WRONG_HOST, 'bad_request', true);
    if (!framingIsRight(req)) return refused(UNMATCHED, WRONG_FRAMING, 'bad_request', true);
    // A question about the server as a whole (RFC 9110 9.3.7).
    if (rawTarget === '*' && method === 'OPTIONS') return proxied('*');
    const target = originForm(rawTarget);
    if (target === undefined) return refused(UNMATCHED, NOT_FOUND, 'no_route');

    const match = router(target);
    switch (match.kind) {
      case 'none':
        if (PATH_OVERRIDES.some((name) => belongsElsewhere(router, header(req.rawHeaders, name))))
          return refused(UNMATCHED, AMBIGUOUS, 'bad_request');
        return proxied(target, hasBody(req) ? undefined : upgradeOf(req));
      case 'ambiguous':
        return refused(UNMATCHED, AMBIGUOUS, 'bad_request');
      case 'route': {
        const { route } = match;
        const deliveries: readonly string[] = [...DELIVERIES, ...(route.handshake?.methods ?? [])];
        if (upgradeOf(req) !== undefined) return refused(route.name, NO_UPGRADE, 'upgrade', true);
        if (deliveries.includes(method)) return { kind: 'delivery', route, target };
        const asks = unmatched === 'proxy' && QUESTIONS.includes(method);
        if (!asks || overridesMethod(req)) return refused(route.name, wrongMethod(deliveries), 'method');
        return proxied(target);
      }
    }
  };
}

/** What the client wants to change to. One that offers HTTP/2 as RFC 7540 3.2 has it goes on as before when nobody takes it up: no wish. */
function upgradeOf(req: IncomingMessage): string | undefined {
  const { upgrade, connection } = req.headers;
  if (upgrade === undefined || !names(connection, 'upgrade') || req.headers['http2-settings'] !== undefined)
    return undefined;
  return upgrade;
}

/** What the connection may become instead of HTTP; undefined: it stays. */
export function upgradeTo(where: Where): { readonly target: string; readonly protocol: string } | undefined {
  if (where.kind !== 'proxied' || where.upgrade === undefined) return undefined;
  const carries = where.upgrade.split(',').some((protocol) => CARRIES_REQUESTS.test(protocol.trim()));
  return carries ? undefined : { target: where.target, protocol: where.upgrade };
}

function overridesMethod(req: IncomingMessage): boolean {
  return METHOD_OVERRIDES.some((name) => header(req.rawHeaders, name) !== undefined);
}

/** Whether what stands beside the target is the path of a route. */
function belongsElsewhere(router: ReturnType<typeof createRouter>, path: string | undefined): boolean {
  const target = path === undefined ? undefined : originForm(path);
  return target !== undefined && router(target).kind !== 'none';
}

/** RFC 9112 3.2: exactly one Host; HTTP/1.0 may do without. */
function hostIsRight(req: IncomingMessage): boolean {
  const hosts = allHeaders(req.rawHeaders, 'host').length;
  return hosts === 1 || (hosts === 0 && req.httpVersion === '1.0');
}

/** RFC 9112 6.1: codings that nobody undoes here would reach the application unnamed; HTTP/1.0 has none. */
function framingIsRight(req: IncomingMessage): boolean {
  const coding = req.headers['transfer-encoding'];
  return coding === undefined || (coding.trim().toLowerCase() === 'chunked' && req.httpVersion === '1.1');
}

function refused(route: string, answer: Answer, reason: string, last = false): Where {
  return { kind: 'refused', route, answer, reason, last };
}

const NOT_FOUND = own(404, 'rejected', 'no such route');
const AMBIGUOUS = own(400, 'rejected', 'the path can be read as that of two routes');
const WRONG_HOST = own(400, 'rejected', 'one Host is needed');
const WRONG_FRAMING = own(400, 'rejected', 'a transfer coding other than chunked');
const NO_UPGRADE = own(501, 'rejected', 'a delivery does not change the protocol');

function wrongMethod(methods: readonly string[]): Answer {
  return own(405, 'rejected', 'not a method for deliveries', ['Allow', methods.join(', ')]);
}
