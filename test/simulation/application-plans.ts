/** What applications are like. */
import type { ApplicationPlan } from './plan.ts';
import type { Random } from './random.ts';

export function mixed(random: Random, lockTtlMs: number): ApplicationPlan {
  return {
    refused: random.pick([0, 0.1]),
    busy: 0,
    failed: random.pick([0, 0.15, 0.4]),
    late: random.pick([0, 0.1]),
    silent: 0,
    reset: random.pick([0, 0.05]),
    lateFailed: 0,
    workMs: [0.5, 25],
    longWork: 0.15,
    longWorkMs: lockTtlMs * 1.3,
    slotMs: random.chance(0.2) ? lockTtlMs * random.between(0.1, 1.5) : 2,
  };
}

/** Does everything that applications do. */
export function troubled(random: Random, lockTtlMs: number): ApplicationPlan {
  const sometimes = (): number => (random.chance(0.6) ? random.between(0, 0.2) : 0);
  return {
    ...mixed(random, lockTtlMs),
    refused: sometimes(),
    busy: sometimes(),
    late: sometimes(),
    silent: sometimes(),
    reset: sometimes(),
    lateFailed: sometimes(),
  };
}

const none = { refused: 0, busy: 0, failed: 0, late: 0, silent: 0, reset: 0, lateFailed: 0 };

/** Succeeds soon, now and then only after the life of a lock. */
export function willing(_random: Random, lockTtlMs: number): ApplicationPlan {
  return { ...none, workMs: [0.5, 25], longWork: 0.1, longWorkMs: lockTtlMs * 2, slotMs: 2 };
}

/** Succeeds in the end, however long it takes. */
export function tireless(_random: Random, lockTtlMs: number): ApplicationPlan {
  return { ...none, workMs: [lockTtlMs * 3, lockTtlMs * 5], longWork: 0, longWorkMs: 0, slotMs: 2 };
}

/** Succeeds, and needs the watchdog for it. */
export function lasting(_random: Random, lockTtlMs: number): ApplicationPlan {
  return { ...none, workMs: [lockTtlMs * 0.8, lockTtlMs * 2], longWork: 0, longWorkMs: 0, slotMs: 2 };
}

/** Succeeds in good time; whoever sleeps then reads of it about when the lock runs out. */
export function timely(_random: Random, lockTtlMs: number): ApplicationPlan {
  return { ...none, workMs: [lockTtlMs * 0.3, lockTtlMs * 0.9], longWork: 0, longWorkMs: 0, slotMs: 2 };
}

/** Fails mostly, and says so at once. */
export function failing(random: Random, lockTtlMs: number): ApplicationPlan {
  return { ...mixed(random, lockTtlMs), failed: random.between(0.5, 0.9), longWork: 0, slotMs: 2 };
}

/** Fails every time. */
export function broken(_random: Random, _lockTtlMs: number): ApplicationPlan {
  return { ...none, failed: 1, workMs: [0.5, 10], longWork: 0, longWorkMs: 0, slotMs: 2 };
}

/** Fails mostly, and says so about the time of the first beat of the watchdog. */
export function failingAtTheBeat(random: Random, lockTtlMs: number): ApplicationPlan {
  return { ...failing(random, lockTtlMs), workMs: [lockTtlMs * 0.3, lockTtlMs * 0.42] };
}

/** Makes everybody wait for a slot. */
export function crowded(random: Random, lockTtlMs: number): ApplicationPlan {
  return { ...mixed(random, lockTtlMs), failed: random.pick([0.1, 0.5]), slotMs: lockTtlMs * random.between(0.5, 3) };
}
