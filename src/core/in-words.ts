/** What is known of an event, and what was done about it, in words for whoever is on call. */
import type { DoneView, Explanation, Forecast, Forgetting } from './operator.ts';
import type { Route } from './route.ts';

type Rules = Pick<Route, 'inFlight' | 'onUnavailable' | 'observe'>;

function forecastInWords(forecast: Forecast, route: Rules): string {
  const observed = route.observe === true ? ' The route only observes: it is forwarded all the same.' : '';
  return `A delivery would now be ${wouldBe(forecast, route)}.${observed}`;
}

/** What a delivery would find; of an event in async mode, also how the work on it stands. */
export function summaryInWords({ forecast, work }: Pick<Explanation, 'forecast' | 'work'>, route: Rules): string {
  return [forecastInWords(forecast, route), ...(work ? [workInWords(work)] : [])].join(' ');
}

function workInWords(work: Forecast): string {
  switch (work.kind) {
    case 'duplicate':
      return `The work on it is done: ${doneInWords(work)}, attempt ${work.attempt}.`;
    case 'forwarded':
      return work.attempt === 1
        ? 'The work on it has not begun.'
        : `The work on it is not done: attempt ${work.attempt - 1} ended without success; the next comes from the queue, or is to be replayed (hookonce dlq list).`;
    case 'in-progress':
      return work.unknown
        ? `The application was handed it and has not answered in time; its lock runs out in ${span(work.leftMs)}.`
        : 'The work on it is under way.';
    case 'unavailable':
    case 'split':
      return 'Too few voters agree on how the work on it stands.';
  }
}

function wouldBe(forecast: Forecast, { inFlight, onUnavailable }: Rules): string {
  switch (forecast.kind) {
    case 'forwarded':
      if (forecast.attempt === 1) return 'forwarded, as attempt 1: no attempt is remembered';
      return `forwarded, as attempt ${forecast.attempt}: no attempt is running, and the last one did not complete or was forgotten`;
    case 'duplicate':
      return `answered as a duplicate, and not forwarded: ${doneInWords(forecast)}, attempt ${forecast.attempt}`;
    case 'in-progress':
      return forecast.unknown
        ? `answered 503: the application was sent the event and has not answered in time; its lock runs out in ${span(forecast.leftMs)}`
        : `${copyIs[inFlight.policy]}: an attempt is running; its lock runs out in ${span(forecast.leftMs)} unless it is renewed`;
    case 'unavailable':
      return forecast.ledger ? 'answered 503: the ledger does not answer' : withoutQuorum[onUnavailable];
    case 'split':
      return `answered 503, or forwarded once the locks have run out (${span(forecast.leftMs)}): the votes have no majority for anything`;
  }
}

const withoutQuorum: Record<Route['onUnavailable'], string> = {
  reject: 'answered 503: too few voters count for a majority',
  forward: 'forwarded without a claim: too few voters count for a majority',
  ledger: 'decided by the ledger alone, and forwarded if it answers: too few voters count for a majority',
};

const copyIs: Record<Route['inFlight']['policy'], string> = {
  wait: 'made to wait for the outcome, then answered',
  reject: 'answered 503',
  accept: 'answered with success, and not forwarded',
};

/** `completed with 200 at 2026-11-30 02:28:11 UTC`. */
export function doneInWords({ status, wallMs, traceId }: DoneView): string {
  return `completed with ${status} at ${utc(wallMs)}${traceId === '' ? '' : ` (trace ${traceId})`}`;
}

export function forgettingInWords(result: Forgetting): string {
  switch (result.kind) {
    case 'forgotten':
      return `Forgotten: the next delivery is processed, as attempt ${result.attempt + 1}.${
        result.running
          ? ' An attempt is still running: until its lock has run out copies are answered as in progress, and its completion is refused.'
          : ''
      }`;
    case 'unknown':
      return 'No voter knows this event; there is nothing to forget.';
    case 'in-progress':
      return `Refused: an attempt holds the event; its lock runs out in ${span(result.leftMs)} unless it is renewed. With force its completion will be refused, and the event processed again.`;
    case 'incomplete':
      return `Not forgotten for certain: it may still be remembered by ${result.remember.map(({ node, why }) => `${node} (${why})`).join(', ')}. Forget it again when all voters answer.`;
  }
}

/** Two units at most: `14.2 s`, `3 min 10 s`, `6 d 23 h`. */
export function span(ms: number): string {
  if (ms < 60_000) return `${(Math.max(0, ms) / 1000).toFixed(1)} s`;
  const s = Math.floor(ms / 1000);
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86_400)} d ${Math.floor((s % 86_400) / 3600)} h`;
}

/** The Swedish form of a date is that of ISO 8601. */
const format = new Intl.DateTimeFormat('sv-SE', { timeZone: 'UTC', dateStyle: 'short', timeStyle: 'medium' });
export const utc = (wallMs: number): string => `${format.format(wallMs)} UTC`;
