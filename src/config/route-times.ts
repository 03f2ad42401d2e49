/** A route's times against its sender's habits. */
import type { Sender } from '../core/sender.ts';
import type { Findings, Path } from './complaints.ts';
import type { Settings } from './schema.ts';
import { formatDuration } from './units.ts';

/** `retentionGiven`: whether the file says claims.retention, rather than leaving it to the default. */
export type ClaimsSettings = Settings['claims'] & { readonly retentionGiven: boolean };

type Habits = Pick<Sender, 'title' | 'timeLimitMs' | 'retryHorizonMs' | 'lastRetryMs'>;

const longestDefaultWaitMs = 4000;
/** Left of the sender's time limit for the claim, the way back, and a little more. */
const reserveMs = 1000;

/** How long copies wait for the first: always shorter than the sender waits for its answer. */
export function inFlightWait(written: number | undefined, sender: Habits, at: Path, findings: Findings): number {
  const limitMs = sender.timeLimitMs ?? Number.POSITIVE_INFINITY;
  if (written === undefined) return Math.min(longestDefaultWaitMs, Math.max(limitMs - reserveMs, limitMs / 2));
  if (written >= limitMs) {
    findings.complain(
      [...at, 'inFlight', 'wait'],
      `found ${formatDuration(written)}, but ${sender.title} gives a delivery up after ${formatDuration(limitMs)}; needs a shorter wait`,
    );
  }
  return written;
}

/**
 * How long done events are remembered: at least as long as the sender may retry, or its last retry
 * would be handled as a new event.
 */
export function retention(
  written: number | undefined,
  sender: Habits,
  claims: ClaimsSettings | undefined,
  at: Path,
  findings: Findings,
): number {
  const horizonMs = sender.retryHorizonMs;
  if (written !== undefined) {
    if (written < horizonMs) {
      findings.complain(
        [...at, 'retention'],
        `found ${formatDuration(written)}, but ${sender.title} may retry for ${formatDuration(horizonMs)}; needs at least that`,
      );
    }
    return written;
  }
  const generalMs = claims?.retention ?? horizonMs;
  if (claims?.retentionGiven === true && generalMs < horizonMs) {
    findings.warn(
      at,
      `claims.retention (${formatDuration(generalMs)}) is shorter than ${sender.title} may retry; this route keeps events for ${formatDuration(horizonMs)}`,
    );
  }
  return Math.max(generalMs, horizonMs);
}

/** A gateway that dies leaves its lock for claims.lockTtl; a sender that has given up by then loses the event. */
export function warnOfEarlyLastRetry(
  route: string,
  sender: Habits,
  claims: ClaimsSettings,
  at: Path,
  findings: Findings,
): void {
  const lastMs = sender.lastRetryMs ?? 0;
  if (lastMs === 0 || lastMs >= claims.lockTtl) return;
  findings.warn(
    at,
    `the last retry of ${sender.title} comes after ${formatDuration(lastMs)}, before claims.lockTtl (${formatDuration(claims.lockTtl)}) is over: an event of ${route} whose gateway died in the middle may be lost`,
  );
}
