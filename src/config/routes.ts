/** Routes as the core sees them, compiled from what is written and what is known of the sender. */
import type { IdentityRule } from '../core/identify.ts';
import { parsePointer } from '../core/json-pointer.ts';
import type { Route } from '../core/route.ts';
import { textSecret, type Sender } from '../core/sender.ts';
import type { SignatureRule } from '../core/verify.ts';
import { describe, type Findings, type Path } from './complaints.ts';
import { nearest } from './nearest.ts';
import { inFlightWait, retention, warnOfEarlyLastRetry, type ClaimsSettings } from './route-times.ts';
import { comparable, pathProblem } from './route-path.ts';
import type { IdentitySettings, RouteSettings } from './schema-route.ts';
import { nameOf, readSecret, type Source } from './secrets.ts';
import type { Written } from './standing.ts';
import { signatureRule } from './verify-rule.ts';

/** What a route takes from its sender; a route with `verify` brings its own, and nothing is known beyond. */
type Basis = Pick<
  Sender,
  'title' | 'signature' | 'decodeSecret' | 'successStatus' | 'timeLimitMs' | 'retryHorizonMs' | 'lastRetryMs'
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
  if (claims !== undefined) warnOfEarlyLastRetry(route.name, basis, claims, at, findings);
  if (identity === undefined) return undefined;
  return {
    name: route.name,
    path: route.path,
    sender: route.sender ?? 'custom',
    signature: basis.signature,
    secrets,
    identity,
    inFlight: {
      policy: route.inFlight.policy,
      waitMs: inFlightWait(route.inFlight.wait, basis, at, findings),
      maxWaiters: route.inFlight.maxWaiters,
    },
    onUnavailable: route.onUnavailable,
    duplicateReply: route.duplicate.reply,
    successStatus: route.duplicate.status ?? basis.successStatus,
    completeOn: route.completeOn,
    retentionMs: retention(route.retention, basis, claims, at, findings),
  };
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
    const signature: SignatureRule | undefined = signatureRule(route.verify, [...at, 'verify'], findings);
    if (signature === undefined) return undefined;
    return {
      title: 'the sender',
      signature,
      decodeSecret: textSecret,
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

function readSecrets(route: RouteSettings, basis: Basis, at: Path, source: Source, findings: Findings): Buffer[] {
  const where = [...at, 'secrets'];
  if (basis.signature.scheme === 'none') {
    if (route.secrets.length > 0)
      findings.complain(
        where,
        'found secrets, but verify.scheme is none; needs a scheme that uses them, or no secrets',
      );
    findings.warn([...at, 'verify', 'scheme'], 'none: anybody who can reach the gateway can post here');
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

/** What is written replaces the sender's own identity as a whole. */
function identityRule(
  written: IdentitySettings | undefined,
  known: IdentityRule | undefined,
  at: Path,
  findings: Findings,
): IdentityRule | undefined {
  if (written === undefined) {
    if (known === undefined)
      findings.complain(
        [...at, 'identity'],
        'found nothing; needs parts or bodyHash, because verify does not say what names an event',
      );
    return known;
  }
  if (written.parts.length === 0 && !written.bodyHash) {
    findings.complain([...at, 'identity'], 'found neither parts nor bodyHash; needs something that names an event');
    return undefined;
  }
  const parts = written.parts.map((part): IdentityRule['parts'][number] => {
    if (part.header !== undefined) return { from: 'header', names: [part.header] };
    if (part.form !== undefined) return { from: 'form', field: part.form };
    return { from: 'json', pointer: parsePointer(part.json!)! };
  });
  return { parts, bodyHash: written.bodyHash, missing: written.missing, scope: written.scope };
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
