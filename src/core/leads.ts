/** Where else the story of an event is told: its log lines, on all gateways, and its trace. */
import type { DeliveryKey } from './delivery.ts';
import type { Explanation } from './operator.ts';

export interface Leads {
  /** A text that is in every log line about the event. */
  readonly grep: string;
  /** The same as a query of Loki. */
  readonly loki: string;
  /** Of the attempt that handled it; undefined where there is none, or it had no trace. */
  readonly traceId: string | undefined;
}

/** As much of a key as is logged: enough to find it again, not enough to be one. */
export const shortKey = (key: string): string => key.slice(0, 8);

export function leadsTo({ id }: DeliveryKey, { forecast, voters }: Explanation): Leads {
  const known = voters.flatMap((voter) => (voter.answer === 'none' ? [] : (voter.record?.done?.traceId ?? [])));
  const traceIds = forecast.kind === 'duplicate' ? [forecast.traceId, ...known] : known;
  return {
    grep: `"key":"${shortKey(id)}"`,
    loki: `{container="hookonce"} | json | key="${shortKey(id)}"`,
    traceId: traceIds.find((traceId) => traceId !== ''),
  };
}
