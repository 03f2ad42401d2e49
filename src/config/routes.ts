/** Routes as the core sees them, compiled from what is written and what is known of the sender. */
import type { IdentityRule } from '../core/identify.ts';
import type { Route } from '../core/route.ts';
import type { Sender } from '../core/sender.ts';
import { describe, type Findings, type Path } from './complaints.ts';
import { elementRule, namedByElements } from './elements-rule.ts';
import { identityRule } from './identity-rule.ts';
import { senderNamed } from './known-sender.ts';
import { orderRule } from './order-rule.ts';
import { inFlightWait, retention, warnOfEarlyLastRetry, type ClaimsSettings } from './route-times.ts';
import { comparable, pathProblem } from './route-path.ts';
import { readSecrets, secretNames } from './route-secrets.ts';
import type { RouteSettings } from './schema-route.ts';
import type { Source } from './secrets.ts';
import type { Written } from './standing.ts';
import { replayGuard, senderOptions } from './sender-options.ts';
import { secretDecoder, signatureRule } from './verify-rule.ts';

/** What a route takes from its sender; a route with `verify` brings its own, and nothing is known beyond. */
type Basis = Pick<
  Sender,
  | 'title'
  | 'signature'
  | 'decodeSecret'
  | 'handshake'
  | 'replayedBy'
  | 'guarded'
  | 'elements'
  | 'ordering'
  | 'successStatus'
  | 'onlyStatus'
  | 'timeLimitMs'
  | 'retryHorizonMs'
  | 'lastRetryMs'
> & {
  readonly identity: IdentityRule | undefined;
};

/** `claims` is undefined when that section is wrong itself: then nothing is measured against it. */
export function compileRoutes(
  written: readonly Written<RouteSettings>[],
  claims: ClaimsSettings | undefined,
  source: Source,
  senders: ReadonlyMap<string, Sender>,
  findings: Findings,
): Route[] {
  unique(written, 'name', (name) => name, findings);
  unique(written, 'path', comparable, findings);
  return written.flatMap(
    ({ index, item: route }) => compileRoute(route, ['routes', index], claims, source, senders, findings) ?? [],
  );
}

/** Undefined after a complaint without which nothing more can be said. */
function compileRoute(
  route: RouteSettings,
  at: Path,
  claims: ClaimsSettings | undefined,
  source: Source,
  senders: ReadonlyMap<string, Sender>,
  findings: Findings,
): Route | undefined {
  const problem = pathProblem(route.path);
  if (problem !== undefined) findings.complain([...at, 'path'], `found ${describe(route.path, [])}; needs ${problem}`);
  // The label under which requests on no route are counted.
  if (route.name === 'unmatched')
    findings.complain([...at, 'name'], 'found "unmatched", which stands for requests on no route; needs another name');

  const basis = basisOf(route, at, senders, findings);
  if (basis === undefined) return undefined;
  const elements = elementRule(route, basis, at, findings);
  const identity = identityRule(route.identity, namedByElements(route, elements) ?? basis.identity, at, findings);
  const secrets = readSecrets(route, basis, at, source, findings);
  const options = senderOptions(route, basis, at, source, findings);
  if (claims !== undefined) warnOfEarlyLastRetry(route.name, basis, claims, at, findings);
  if (route.observe)
    findings.warn(
      [...at, 'observe'],
      'nothing is stopped on this route, and deliveries with a wrong signature are forwarded too',
    );
  if (route.observe && route.mode === 'async')
    findings.complain(
      [...at, 'observe'],
      'found true with mode: async; needs mode: sync, as nothing that only observes answers 202',
    );
  if (route.mode === 'async' && route.duplicate.reply === 'stored')
    findings.warn(
      [...at, 'duplicate', 'reply'],
      'stored, but in async mode copies are answered before the application is',
    );
  if (identity === undefined) return undefined;
  const waitMs = inFlightWait(route.inFlight.wait, basis, at, findings);
  const retentionMs = retention(route.retention, basis, claims, at, findings);
  return {
    name: route.name,
    path: route.path,
    sender: route.sender ?? 'custom',
    secrets,
    secretNames: secretNames(route.secrets),
    ...options,
    ...replayGuard(route, basis, retentionMs),
    identity,
    ...(elements && { elements }),
    ...(route.verify?.over === 'decoded' && { signatureOver: 'decoded' }),
    ...limitsOf(route),
    inFlight: {
      policy: route.inFlight.policy,
      waitMs,
      maxWaiters: route.inFlight.maxWaiters,
    },
    ...(route.fingerprint === 'ignore' ? {} : { fingerprint: route.fingerprint }),
    ...orderRule(route, basis.ordering, at, findings),
    onUnavailable: route.onUnavailable,
    duplicateReply: route.duplicate.reply,
    successStatus: route.duplicate.status ?? basis.successStatus,
    completeOn: route.completeOn,
    retentionMs,
    ...(route.observe && { observe: true }),
    ...(route.mode === 'async' && { async: { acceptedStatus: acceptedStatus(route, basis) } }),
  };
}

/** In async mode: 202, unless it is known, or written, what the sender takes for success. */
function acceptedStatus({ duplicate }: RouteSettings, { successStatus, onlyStatus }: Basis): number {
  return duplicate.status ?? (onlyStatus === true || successStatus !== 200 ? successStatus : 202);
}

/** Only what there is. */
function limitsOf({ limits: { body, inFlight } }: RouteSettings): Pick<Route, 'limits'> {
  if (body === undefined && inFlight === undefined) return {};
  return { limits: { bodyBytes: body, inFlight } };
}

function basisOf(
  route: RouteSettings,
  at: Path,
  senders: ReadonlyMap<string, Sender>,
  findings: Findings,
): Basis | undefined {
  if ((route.sender === undefined) === (route.verify === undefined)) {
    findings.complain(
      at,
      `found ${route.sender === undefined ? 'neither sender nor verify' : 'both sender and verify'}; needs exactly one of them`,
    );
    return undefined;
  }
  if (route.verify !== undefined) {
    const signature = signatureRule(route.verify, [...at, 'verify'], findings);
    if (signature === undefined) return undefined;
    return {
      title: 'the sender',
      signature,
      decodeSecret: secretDecoder(route.verify),
      identity: undefined,
      successStatus: 200,
      timeLimitMs: undefined,
      retryHorizonMs: 0,
    };
  }
  return senderNamed(route.sender!, at, senders, findings);
}

function unique(
  written: readonly Written<RouteSettings>[],
  field: 'name' | 'path',
  form: (value: string) => string,
  findings: Findings,
): void {
  const first = new Map<string, number>();
  for (const { index, item: route } of written) {
    const taken = first.get(form(route[field]));
    if (taken === undefined) first.set(form(route[field]), index);
    else
      findings.complain(
        ['routes', index, field],
        `found ${JSON.stringify(route[field])}, which routes[${taken}].${field} has already; needs another`,
      );
  }
}
