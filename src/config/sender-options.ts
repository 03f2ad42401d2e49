/** What a route says about its sender's ways: its public URL, its window, its handshake, replays. */
import type { Key } from '../core/delivery.ts';
import { parsePublicUrl, type PublicUrl } from '../core/public-url.ts';
import type { Route } from '../core/route.ts';
import type { Sender } from '../core/sender.ts';
import { textSecret } from '../core/secret.ts';
import type { TemplateRule } from '../core/signature-template.ts';
import { templatesOf, usesUrl, type SignatureRule } from '../core/verify.ts';
import { describe, type Findings, type Path } from './complaints.ts';
import type { RouteSettings } from './schema-route.ts';
import { readSecret, type Source } from './secrets.ts';

type Ways = Pick<Sender, 'title' | 'signature' | 'handshake'>;

type Options = Pick<Route, 'signature' | 'publicUrl' | 'handshake' | 'handshakeToken' | 'handshakeReveal'>;

/** Only what there is: a route without any of these has no such field. */
export function senderOptions(route: RouteSettings, ways: Ways, at: Path, source: Source, findings: Findings): Options {
  const publicUrl = compilePublicUrl(route, ways, at, findings);
  const token =
    route.handshake?.token && readSecret(route.handshake.token, source, [...at, 'handshake', 'token'], findings);
  if (route.handshake !== undefined && ways.handshake === undefined)
    findings.complain([...at, 'handshake'], `found settings, but ${ways.title} has no handshake; needs none`);
  else if (token !== undefined && ways.handshake?.token === undefined)
    findings.complain(
      [...at, 'handshake', 'token'],
      `found a reference, but the handshake of ${ways.title} has no token; needs none`,
    );
  return {
    signature: withTolerance(route.tolerance, ways, at, findings),
    ...(publicUrl === undefined ? {} : { publicUrl }),
    ...(ways.handshake === undefined ? {} : { handshake: ways.handshake }),
    ...(token === undefined ? {} : { handshakeToken: textSecret(token) as Extract<Key, Buffer> }),
    ...(route.handshake?.reveal === true ? { handshakeReveal: true } : {}),
  };
}

/** What is written, or what is known of the sender: then for as long as its events are remembered. */
export function replayGuard(
  { replayGuard: written }: RouteSettings,
  { replayedBy = 'body', guarded = false }: Pick<Sender, 'replayedBy' | 'guarded'>,
  retentionMs: number,
): Pick<Route, 'replayGuard'> {
  const windowMs = written ?? (guarded ? retentionMs : 'off');
  return windowMs === 'off' ? {} : { replayGuard: { of: replayedBy, windowMs } };
}

function compilePublicUrl(
  { publicUrl }: RouteSettings,
  ways: Ways,
  at: Path,
  findings: Findings,
): PublicUrl | undefined {
  const where = [...at, 'publicUrl'];
  if (publicUrl === undefined) {
    if (usesUrl(ways.signature))
      findings.complain(
        where,
        `found nothing, but the signatures of ${ways.title} cover the URL; needs the URL that it posts to`,
      );
    return undefined;
  }
  const parsed = parsePublicUrl(publicUrl);
  if (parsed === undefined)
    findings.complain(
      where,
      `found ${describe(publicUrl, [])}; needs a URL such as https://hooks.example.com/path, without a fragment`,
    );
  else if (!usesUrl(ways.signature))
    findings.warn(where, `has no effect: the signatures of ${ways.title} do not cover the URL`);
  else if (URL.parse(publicUrl)?.password)
    findings.warn(where, 'holds a password, which everybody who reads the configuration sees');
  return parsed;
}

/** The sender's rule, with another window. */
function withTolerance(
  toleranceMs: number | undefined,
  { title, signature }: Ways,
  at: Path,
  findings: Findings,
): SignatureRule {
  if (toleranceMs === undefined) return signature;
  const changed = (rule: TemplateRule): TemplateRule =>
    rule.timestamp === undefined ? rule : { ...rule, timestamp: { ...rule.timestamp, toleranceMs } };
  if (templatesOf(signature).some((rule) => rule.timestamp !== undefined)) {
    if ('signed' in signature) return changed(signature);
    if ('rules' in signature) {
      const [first, ...rest] = signature.rules;
      return { ...signature, rules: [changed(first), ...rest.map(changed)] };
    }
  }
  findings.complain(
    [...at, 'tolerance'],
    `found a window, but ${title} signs no timestamp whose window can be set; needs none`,
  );
  return signature;
}
