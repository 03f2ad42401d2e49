/** Routes as the core sees them, compiled from what is written and what is known of the sender. */
import type { Key } from '../core/delivery.ts';
import type { IdentityRule } from '../core/identify.ts';
import type { Route } from '../core/route.ts';
import type { Sender } from '../core/sender.ts';
import { describe, type Findings, type Path } from './complaints.ts';
import { identityRule } from './identity-rule.ts';
import { nearest } from './nearest.ts';
import { inFlightWait, retention, warnOfEarlyLastRetry, type ClaimsSettings } from './route-times.ts';
import { comparable, pathProblem } from './route-path.ts';
import type { SecretRef } from './fields.ts';
import type { RouteSettings } from './schema-route.ts';
import { nameOf, readSecret, type Source } from './secrets.ts';
import type { Written } from './standing.ts';
import { senderOptions } from './sender-options.ts';
import { secretDecoder, signatureRule } from './verify-rule.ts';

/** What a route takes from its sender; a route with `verify` brings its own, and nothing is known beyond. */
type Basis = Pick<
  Sender,
  | 'title'
  | 'signature'
  | 'decodeSecret'
  | 'handshake'
  | 'replayedBy'
  | 'successStatus'
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
  const identity = identityRule(route.identity, basis.identity, at, findings);
  const secrets = readSecrets(route, basis, at, source, findings);
  const options = senderOptions(route, basis, at, source, findings);
  if (claims !== undefined) warnOfEarlyLastRetry(route.name, basis, claims, at, findings);
  if (route.observe)
    findings.warn(
      [...at, 'observe'],
      'nothing is stopped on this route, and deliveries with a wrong signature are forwarded too',
    );
  if (identity === undefined) return undefined;
  return {
    name: route.name,
    path: route.path,
    sender: route.sender ?? 'custom',
    secrets,
    secretNames: secretNames(route.secrets),
    ...options,
    identity,
    ...(route.verify?.over === 'decoded' && { signatureOver: 'decoded' }),
    ...limitsOf(route),
    inFlight: {
      policy: route.inFlight.policy,
      waitMs: inFlightWait(route.inFlight.wait, basis, at, findings),
      maxWaiters: route.inFlight.maxWaiters,
    },
    ...(route.fingerprint === 'ignore' ? {} : { fingerprint: route.fingerprint }),
    onUnavailable: route.onUnavailable,
    duplicateReply: route.duplicate.reply,
    successStatus: route.duplicate.status ?? basis.successStatus,
    completeOn: route.completeOn,
    retentionMs: retention(route.retention, basis, claims, at, findings),
    ...(route.observe && { observe: true }),
  };
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
  const sender = senders.get(route.sender!);
  if (sender === undefined) {
    const meant = nearest(route.sender!, senders.keys());
    const hint =
      meant === undefined
        ? `one of ${[...senders.keys()].join(', ')}, or verify instead`
        : `a sender that is known; did you mean ${meant}?`;
    findings.complain([...at, 'sender'], `found ${describe(route.sender, [])}; needs ${hint}`);
  }
  return sender;
}

function readSecrets(route: RouteSettings, basis: Basis, at: Path, source: Source, findings: Findings): Key[] {
  const where = [...at, 'secrets'];
  if (basis.signature.scheme === 'none') {
    if (route.secrets.length > 0)
      findings.complain(
        where,
        route.verify
          ? 'found secrets, but verify.scheme is none; needs a scheme that uses them, or no secrets'
          : `found secrets, but ${basis.title} are not signed; needs none`,
      );
    const unsigned = route.verify ? [...at, 'verify', 'scheme'] : [...at, 'sender'];
    findings.warn(unsigned, `${route.verify ? 'none' : route.sender}: anybody who can reach the gateway can post here`);
    return [];
  }
  if (route.secrets.length === 0)
    findings.complain(where, 'found nothing; needs at least one reference, {file: /path/to/secret} or {env: NAME}');
  return route.secrets.flatMap((ref, i) => {
    const text = readSecret(ref, source, [...where, i], findings);
    if (text === undefined) return [];
    const key = basis.decodeSecret(text);
    if (typeof key !== 'string') return [key];
    findings.complain([...where, i], `the secret in ${nameOf(ref)} ${key}`);
    return [];
  });
}

/** What secrets are called in metrics: the last part of the reference; all of it where that would be said of two. */
function secretNames(refs: readonly SecretRef[]): string[] {
  const short = refs.map(({ file, env }) => (file === undefined ? env! : file.slice(file.lastIndexOf('/') + 1)));
  return refs.map(
    ({ file }, i) => (short.filter((name) => name === short[i]).length > 1 ? file : undefined) ?? short[i]!,
  );
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
