/** Draws the plan of a run from its seed. */
import { lockHoldMs } from '../../src/redis/items.ts';
import type { Copy, Plan } from './plan.ts';
import { PROFILES, type Profile } from './profiles.ts';
import type { Random } from './random.ts';

export function planFor(random: Random, voters: number, profileName?: string): Plan {
  const profile = profileName === undefined ? drawn(random) : PROFILES.find((one) => one.name === profileName)!;
  const lockTtlMs = random.pick(profile.lockTtlMs);
  const longestMs = Math.floor((lockTtlMs / 3 - 60) / 2);
  const voterTimeoutMs = profile.patientVoters ? longestMs : random.integer(30, longestMs);
  const budgetMs = random.integer(2 * voterTimeoutMs + 51, Math.floor(lockTtlMs / 3) - 1);
  const slow = random.chance(0.5) ? voterTimeoutMs * random.between(0.05, 0.45) : random.between(0.3, 3);
  const unknownHoldMs = Math.round(lockTtlMs * random.pick([1, 1, 1.5]));
  const firstStart = random.chance(profile.trust) ? 'trust' : 'wait';
  // Nothing can be claimed before the voters count: what comes earlier is worth a look in some runs only.
  const readyMs = firstStart === 'wait' ? lockHoldMs(unknownHoldMs) + 1200 + 20 * slow : 6 * slow + 10;
  const beginsMs = profile.quiet !== true && random.chance(0.1) ? 0 : readyMs;
  const calmAtMs = beginsMs + lockTtlMs * random.between(profile.lasts[0], profile.lasts[1]);
  const upstreamTimeoutMs = Math.round(lockTtlMs * random.between(profile.patience[0], profile.patience[1]));
  const maxWaitMs = Math.round(lockTtlMs * random.between(0.1, 2.5));
  const gateways = random.integer(profile.gateways[0], profile.gateways[1]);
  const aof = random.chance(profile.aof);
  return {
    profile: profile.name,
    quiet: profile.quiet === true,
    voters,
    gateways,
    lockTtlMs,
    voterTimeoutMs,
    budgetMs,
    unknownHoldMs,
    maxHoldMs: Math.round(maxWaitMs + upstreamTimeoutMs + lockTtlMs * random.between(profile.hold[0], profile.hold[1])),
    upstreamTimeoutMs,
    maxWaitMs,
    copyWaitMs: random.chance(0.4) ? Math.round(lockTtlMs * random.between(0.2, 1.5)) : 0,
    firstStart,
    recoverAfterMs: Math.round(lockTtlMs * random.between(0.5, 3)),
    aof,
    always: aof && random.chance(profile.always),
    delayMs: [0.1, slow],
    tail: random.chance(0.5) ? profile.tail : 0,
    tailMs: random.chance(profile.tailInTime) ? voterTimeoutMs * random.between(0.7, 1.5) : lockTtlMs * 1.2,
    loss: random.chance(0.7) ? random.between(0, profile.loss) : 0,
    ordered: true,
    copies: copies(random, profile, beginsMs, gateways, lockTtlMs),
    application: profile.application(random, lockTtlMs),
    faults: profile.faults(random, {
      voters,
      gateways,
      lockTtlMs,
      voterTimeoutMs,
      delayMs: slow,
      lockHoldMs: lockHoldMs(unknownHoldMs),
      beginsMs,
      calmAtMs,
    }),
    troubleFromMs: profile.troubledStart ? 0 : beginsMs,
    calmAtMs,
  };
}

function drawn(random: Random): Profile {
  let left = random.next() * PROFILES.reduce((sum, profile) => sum + profile.weight, 0);
  for (const profile of PROFILES) {
    left -= profile.weight;
    if (left < 0) return profile;
  }
  return PROFILES[0]!;
}

/** The first of them, and the others in bursts at one instant as well as spread over the life of a lock. */
function copies(random: Random, profile: Profile, beginsMs: number, gateways: number, lockTtlMs: number): Copy[] {
  const firstMs = beginsMs + random.between(0, 20);
  const spread = profile.spread.length === 2 ? profile.spread : [random.pick(profile.spread)];
  return Array.from({ length: random.integer(profile.copies[0], profile.copies[1]) }, (_, index) => {
    const [earliest, latest] = spread[Math.min(Math.max(0, index - 1), spread.length - 1)]!;
    const shortest = lockTtlMs * random.between(0.05, 0.8);
    return {
      atMs: index === 0 ? firstMs : firstMs + lockTtlMs * random.between(earliest, latest),
      gateway: index < 2 ? index % gateways : random.integer(0, gateways - 1),
      retryMs: [shortest, shortest * random.between(1, 4)] as const,
      again: random.chance(0.15),
    };
  });
}
