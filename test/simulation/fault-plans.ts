/** What befalls voters, links and gateways in a kind of runs. */
import { FAULT_LENGTHS, type Fault, type FaultKind } from './plan.ts';
import type { Random } from './random.ts';

export interface Scale {
  readonly voters: number;
  readonly gateways: number;
  readonly lockTtlMs: number;
  readonly voterTimeoutMs: number;
  /** One way to a voter, at most. */
  readonly delayMs: number;
  readonly lockHoldMs: number;
  readonly beginsMs: number;
  readonly calmAtMs: number;
}

export type FaultPlan = (random: Random, scale: Scale) => Fault[];

const ANY_OP = ['claim', 'claim', 'confirm', 'extend', 'complete', 'release', 'heal', 'trust'];

/** One to five faults, half of them right after something has happened on a voter. */
export function some(kinds: readonly FaultKind[], ops: readonly string[] = ANY_OP): FaultPlan {
  return (random, scale) =>
    Array.from({ length: random.integer(1, 5) }, () => {
      const when = random.chance(0.5)
        ? { atMs: random.between(scale.beginsMs, scale.calmAtMs) }
        : { op: random.pick(ops), nth: random.integer(1, 6) };
      return fault(random, scale, random.pick(kinds), when);
    });
}

/** Up to three faults, all of them right after the first few items of these kinds. */
export function soonAfter(ops: readonly string[], kinds: readonly FaultKind[]): FaultPlan {
  return (random, scale) =>
    Array.from({ length: random.integer(1, 3) }, () => ({
      ...fault(random, scale, random.pick(kinds), { op: random.pick(ops), nth: random.integer(1, scale.voters + 1) }),
      ...(random.chance(0.4) && { elsewhere: true as const }),
    }));
}

export function minorityAway(random: Random, scale: Scale): Fault[] {
  return away(random, scale, random.integer(0, (scale.voters - 1) / 2));
}

export function oneAway(random: Random, scale: Scale): Fault[] {
  return away(random, scale, 1);
}

/** Gone before the first copy comes, until everything is calm. */
function away(random: Random, scale: Scale, count: number): Fault[] {
  return Array.from({ length: count }, (_, voter) => ({
    ...fault(random, scale, 'kill', { atMs: scale.beginsMs - 5 }),
    voter,
    lengthMs: scale.calmAtMs,
  }));
}

/** The next voter goes when the one before is up, connected, and has had two beats of the watchdog. */
export function oneByOne(random: Random, scale: Scale): Fault[] {
  const faults: Fault[] = [];
  let atMs = scale.beginsMs + scale.lockTtlMs * random.between(0.1, 0.5);
  for (let voter = 0; voter < scale.voters; voter += 1) {
    const one = { ...fault(random, scale, 'empty restart', { atMs }), voter, lengthMs: random.between(1, 60) };
    faults.push(one);
    atMs += one.lengthMs + 300 + (2 / 3) * scale.lockTtlMs + 2 * scale.voterTimeoutMs;
  }
  return faults;
}

/** The first gateway's requests to one voter are kept back from after its claim until its lock there has run out. */
export function oneVoterUnextended(random: Random, scale: Scale): Fault[] {
  const atMs = scale.beginsMs + 3 * scale.delayMs;
  return [
    { ...fault(random, scale, 'stall', { atMs }), gateway: 0, lengthMs: scale.lockTtlMs * random.between(1.1, 1.3) },
  ];
}

/**
 * A voter starts again, and once more shortly before its hold is over: what it granted meanwhile is lost a second time.
 * The first gateway cannot reach another voter, so that its lock depends on the one that is on hold.
 */
export function restartedTwice(random: Random, scale: Scale): Fault[] {
  const voter = random.integer(0, scale.voters - 1);
  const other = (voter + random.integer(1, scale.voters - 1)) % scale.voters;
  const firstMs = scale.beginsMs - random.between(0, scale.lockTtlMs);
  const againMs = firstMs + scale.lockHoldMs - random.between(20, scale.lockTtlMs);
  const kind = random.pick(['power cut', 'empty restart'] as const);
  const short = { voter, lengthMs: 1 };
  return [
    { ...fault(random, scale, 'power cut', { atMs: firstMs }), ...short },
    { ...fault(random, scale, kind, { atMs: againMs }), ...short, lostMs: 2000 },
    {
      ...fault(random, scale, 'stall', { atMs: scale.beginsMs + random.between(0.5, 1.5) * scale.lockTtlMs }),
      gateway: 0,
      voter: other,
      lengthMs: 3 * scale.lockTtlMs,
    },
  ];
}

/**
 * A voter loses what it has written soon after the first copies, and learns it again. When it counts, another goes: what
 * the two knew alone is needed then, for copies that come late. Now and then the other one forgets as well, or the first
 * starts again while it learns. The gateway that wrote it may be gone by then; not after a power cut, where only that
 * gateway can tell what was lost.
 */
export function oneAfterAnother(random: Random, scale: Scale): Fault[] {
  const voter = random.integer(0, scale.voters - 1);
  const other = (voter + random.integer(1, scale.voters - 1)) % scale.voters;
  const firstMs = scale.beginsMs + random.between(0, 1.2) * scale.lockTtlMs;
  const againMs = firstMs + scale.lockHoldMs + random.between(-0.2, 2) * scale.lockTtlMs;
  const loss = random.pick(['empty restart', 'flush', 'power cut', 'power cut'] as const);
  const later = random.pick(['kill', 'kill', 'freeze', 'empty restart', 'power cut'] as const);
  return [
    { ...fault(random, scale, loss, { atMs: firstMs }), voter, lengthMs: random.between(1, 60), lostMs: 2000 },
    {
      ...fault(random, scale, later, { atMs: againMs }),
      voter: other,
      lengthMs: scale.lockTtlMs * random.between(0.1, 3),
    },
    ...sometimes(random, 0.3, {
      ...fault(random, scale, 'kill', { atMs: firstMs + random.between(0.1, 1) * scale.lockHoldMs }),
      voter,
      lengthMs: 5,
    }),
    ...sometimes(random, loss === 'power cut' ? 0 : 0.8, {
      ...fault(random, scale, 'death', { atMs: firstMs - random.between(-5, 50) }),
      gateway: 0,
    }),
  ];
}

function sometimes(random: Random, probability: number, one: Fault): Fault[] {
  return random.chance(probability) ? [one] : [];
}

function fault(random: Random, scale: Scale, kind: FaultKind, when: Fault['when']): Fault {
  const [shortest, longest] = FAULT_LENGTHS[kind];
  return {
    kind,
    when,
    voter: random.integer(0, scale.voters - 1),
    gateway: random.integer(0, scale.gateways - 1),
    lengthMs: scale.lockTtlMs * random.between(shortest, longest),
    lostMs: random.between(1, 2000),
  };
}
