/** Explain and forget for events of async mode, which have two halves: that they were accepted, and the work on them. */
import type { DeliveryKey } from './delivery.ts';
import { workKey } from './work-key.ts';
import type { Explanation, Forgetting, Operator } from './operator.ts';

/** For routes in sync mode it makes no difference: nobody knows of work on their events. */
export function bothHalves(operator: Operator): Operator {
  return {
    async explain(key: DeliveryKey): Promise<Explanation> {
      const [event, work] = await Promise.all([operator.explain(key), operator.explain(workKey(key))]);
      return work.voters.some((view) => view.answer !== 'none' && view.record)
        ? { ...event, work: work.forecast }
        : event;
    },
    /** The work first: an event that is accepted again while its work is still remembered would be dropped by the worker. */
    async forget(key: DeliveryKey, retentionMs: number, force: boolean): Promise<Forgetting> {
      const work = await operator.forget(workKey(key), retentionMs, force);
      if (work.kind === 'in-progress' || work.kind === 'incomplete') return work;
      const event = await operator.forget(key, retentionMs, force);
      return event.kind === 'unknown' ? work : event;
    },
  };
}
