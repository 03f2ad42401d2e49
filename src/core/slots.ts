/** A fixed number of slots, and a bounded queue in front of them: first come, first served. */
import type { Clock } from './ports.ts';

export interface SlotLimits {
  readonly maxInFlight: number;
  readonly maxWaiting: number;
  /** How long one waits for a slot, milliseconds. */
  readonly maxWaitMs: number;
}

export interface Slots {
  /** `waiting`: the queue is full; `in_flight`: the wait was in vain. Whoever took a slot gives it back once. */
  take(): 'taken' | 'waiting' | Promise<'taken' | 'in_flight'>;
  give(): void;
  /** Other limits from now on; who waits already waits as long as before. */
  resize(limits: SlotLimits): void;
  /** Sends away all who wait. */
  close(): void;
}

/** `onWaiting` hears how many wait. */
export function createSlots(limits: SlotLimits, clock: Clock, onWaiting: (count: number) => void = () => {}): Slots {
  let { maxInFlight, maxWaiting, maxWaitMs } = limits;
  let taken = 0;
  const queue = new Set<(slot: 'taken' | 'in_flight') => void>();
  return {
    take() {
      if (taken < maxInFlight) {
        taken += 1;
        return 'taken';
      }
      if (queue.size >= maxWaiting) return 'waiting';
      return new Promise((resolve) => {
        const serve = (slot: 'taken' | 'in_flight'): void => {
          cancel();
          queue.delete(serve);
          onWaiting(queue.size);
          resolve(slot);
        };
        const cancel = clock.timer(maxWaitMs, () => serve('in_flight'));
        queue.add(serve);
        onWaiting(queue.size);
      });
    },
    give() {
      const [next] = queue;
      if (next === undefined || taken > maxInFlight) taken -= 1;
      else next('taken');
    },
    resize(next) {
      ({ maxInFlight, maxWaiting, maxWaitMs } = next);
      for (const serve of queue) {
        if (taken >= maxInFlight) break;
        taken += 1;
        serve('taken');
      }
    },
    close() {
      for (const serve of queue) serve('in_flight');
    },
  };
}
