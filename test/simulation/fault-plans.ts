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

/** The first gateway sleeps from after its claim until about when its lock runs out. */
export function asleepToTheEnd(random: Random, scale: Scale): Fault[] {
  const atMs = afterTheClaim(scale);
  const untilMs = scale.beginsMs + scale.lockTtlMs * random.between(0.95, 1.12);
  return [{ ...fault(random, scale, 'lapse', { atMs }), gateway: 0, lengthMs: untilMs - atMs }];
}

/** The voters go and come back one after another, so that each of them knows of other attempts. */
export function takingTurns(random: Random, scale: Scale): Fault[] {
  const faults: Fault[] = [];
  for (let atMs = scale.beginsMs - 5; atMs < scale.calmAtMs;) {
    const one = fault(random, scale, 'kill', { atMs });
    const lengthMs = scale.lockTtlMs * random.between(0.1, 0.5);
    faults.push({ ...one, lengthMs });
    atMs += lengthMs + scale.lockTtlMs * random.between(0.02, 0.4);
  }
  return faults;
}

/**
 * The first gateway's lock begins on a bare quorum, as its requests to the others are kept back. One of the quorum loses
 * it; often it cannot be told to put it back.
 */
export function bareQuorum(random: Random, scale: Scale): Fault[] {
  const [victim, , ...spares] = someVoters(random, scale);
  const kept = (voter: number, atMs: number): Fault => ({
    ...fault(random, scale, 'stall', { atMs }),
    ...{ gateway: 0, voter, lengthMs: scale.lockTtlMs * random.between(1, 2) },
  });
  const loss = random.pick(['power cut', 'power cut', 'empty restart', 'flush'] as const);
  const lossMs = afterTheClaim(scale) + scale.lockTtlMs * random.between(0.01, 0.6);
  const written = { lostMs: lossMs - scale.beginsMs + 5 };
  return [
    ...spares.map((spare) => kept(spare, scale.beginsMs - 1)),
    ...sometimes(random, 0.6, kept(victim!, afterTheClaim(scale))),
    { ...fault(random, scale, loss, { atMs: lossMs }), ...written, voter: victim!, lengthMs: random.between(1, 60) },
  ];
}

/** When the first copy has been claimed, if nothing is lost. */
function afterTheClaim({ beginsMs, delayMs }: Scale): number {
  return beginsMs + 25 + 3 * delayMs;
}

/** All voters in any order; for a quorum the first, the second and, of five, one more is left out: the spares come last. */
function someVoters(random: Random, { voters }: Scale): number[] {
  const left = Array.from({ length: voters }, (_, voter) => voter);
  const drawn: number[] = [];
  while (left.length > 0) drawn.push(...left.splice(random.integer(0, left.length - 1), 1));
  if (voters < 5) return drawn;
  const [first, second, , ...spares] = drawn;
  return [first!, second!, ...spares];
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
 * the two knew alone, as the others were away then, is needed for copies that come late. Now and then the other one
 * forgets as well, or the first starts again, or loses everything again, while it learns. The gateway that wrote it may
 * be gone by then; not after a power cut, where only that gateway can tell what was lost.
 */
export function oneAfterAnother(random: Random, scale: Scale): Fault[] {
  const [voter, other, ...spares] = someVoters(random, scale) as [number, number, ...number[]];
  const { beginsMs, lockTtlMs, lockHoldMs } = scale;
  const firstMs = beginsMs + random.between(0.05, 1) * lockTtlMs;
  // Whoever teaches looks every half second.
  const againMs = firstMs + lockHoldMs + random.pick([-0.2 * lockTtlMs, 600]) + random.between(0, 1) * lockTtlMs;
  const loss = random.pick(['empty restart', 'flush', 'power cut'] as const);
  // All that the copies have written, and not the voter's own marker, which would tell that it is gone.
  const lostMs = firstMs - beginsMs + 5;
  const later = random.pick(['kill', 'kill', 'freeze', 'empty restart', 'power cut'] as const);
  const away = random.chance(0.8) ? spares : [];
  const besides: Fault[] = {
    nothing: [],
    restart: [
      { ...fault(random, scale, 'kill', { atMs: firstMs + random.between(0.1, 1) * lockHoldMs }), voter, lengthMs: 5 },
    ],
    loss: [
      {
        ...fault(random, scale, random.pick(['flush', 'empty restart']), { op: 'learn', nth: 1 }),
        ...{ voter, elsewhere: true as const, lengthMs: 5 },
      },
    ],
  }[random.pick(['nothing', 'restart', 'loss'] as const)];
  return [
    ...away.map((spare) => ({
      ...fault(random, scale, 'kill', { atMs: beginsMs - 5 }),
      ...{ voter: spare, lengthMs: lockTtlMs * random.between(0.3, 1) },
    })),
    { ...fault(random, scale, loss, { atMs: firstMs }), voter, lengthMs: random.between(1, 60), lostMs },
    {
      ...fault(random, scale, later, { atMs: againMs }),
      ...{ voter: other, lengthMs: lockTtlMs * random.between(0.8, 3) },
    },
    ...besides,
    ...sometimes(random, loss === 'power cut' ? 0 : 0.8, {
      ...fault(random, scale, 'death', { atMs: firstMs + random.between(0, 5) }),
      gateway: 0,
    }),
  ];
}

/**
 * While all are new: a gateway's messages to a voter are kept back, from its first hello on or from before its trust;
 * meanwhile that voter loses everything, and with another, whom the first gateway cannot reach, makes a majority that
 * never heard of what that gateway holds.
 */
export function metTooLate(random: Random, scale: Scale): Fault[] {
  const [voter, , ...spares] = someVoters(random, scale);
  const lostAtMs = scale.beginsMs + random.between(0.05, 0.5) * scale.lockTtlMs;
  const fromHello = { op: 'hello', nth: random.integer(scale.voters, 4 * scale.voters) };
  const loss = random.pick(['empty restart', 'flush', 'flush'] as const);
  return [
    {
      ...fault(random, scale, 'stall', random.chance(0.2) ? { atMs: 0 } : fromHello),
      ...{ voter: voter!, gateway: 1, elsewhere: true },
      lengthMs: lostAtMs + random.between(0, 0.5) * scale.lockTtlMs,
    },
    ...spares.map((spare) => ({
      ...fault(random, scale, 'stall', { atMs: scale.beginsMs - 1 }),
      ...{ gateway: 0, voter: spare, lengthMs: 2 * scale.lockTtlMs },
    })),
    ...sometimes(random, 0.7, {
      ...fault(random, scale, 'stall', { atMs: afterTheClaim(scale) }),
      ...{ gateway: 0, voter: voter!, lengthMs: 2 * scale.lockTtlMs },
    }),
    { ...fault(random, scale, loss, { atMs: lostAtMs }), voter: voter!, lengthMs: 1 },
  ];
}

/**
 * One voter acknowledges a completion at once, and loses it when the gateway that wrote it has not sent it for so long
 * that it would not send it again by itself; the others can be reached only then, or not at all. Then the one that heard
 * of it last goes.
 */
export function acknowledgedLongAgo(random: Random, scale: Scale): Fault[] {
  const [voter, other, ...spares] = someVoters(random, scale) as [number, number, ...number[]];
  const { beginsMs, lockTtlMs } = scale;
  const lossMs = beginsMs + random.between(11_000, 12_000);
  const away = (one: number, untilMs: number): Fault => {
    const atMs = beginsMs + 0.35 * lockTtlMs;
    return { ...fault(random, scale, 'stall', { atMs }), gateway: 0, voter: one, lengthMs: untilMs - atMs };
  };
  return [
    ...Array.from({ length: scale.voters }, (_, one) => one)
      .filter((one) => one !== voter && !spares.includes(one))
      .map((one) => away(one, lossMs + 500)),
    ...spares.map((one) => away(one, scale.calmAtMs)),
    {
      ...fault(random, scale, 'power cut', { atMs: lossMs }),
      ...{ voter, lengthMs: 1, lostMs: lossMs - beginsMs + 5 },
    },
    { ...fault(random, scale, 'kill', { atMs: lossMs + 5500 }), voter: other, lengthMs: scale.calmAtMs },
  ];
}

/**
 * A failure is told to a bare quorum, by a gateway that dies then. One of it forgets, and while it learns, the second gateway's claims come and go there,
 * as that gateway cannot reach the other one; which goes as soon as the first counts again.
 */
export function relearnt(random: Random, scale: Scale): Fault[] {
  const [voter, other, ...spares] = someVoters(random, scale) as [number, number, ...number[]];
  const { beginsMs, lockTtlMs, calmAtMs } = scale;
  return [
    ...spares.map((spare) => ({
      ...fault(random, scale, 'kill', { atMs: beginsMs - 5 }),
      ...{ voter: spare, lengthMs: lockTtlMs * random.between(0.3, 0.6) },
    })),
    {
      ...fault(random, scale, 'empty restart', { op: 'release', nth: 2 }),
      ...{ voter, elsewhere: true, lengthMs: 5 },
    },
    fault(random, scale, 'death', { op: 'release', nth: 2 }),
    {
      ...fault(random, scale, 'stall', { atMs: beginsMs }),
      ...{ gateway: 1, voter: other, lengthMs: calmAtMs },
    },
    {
      ...fault(random, scale, 'kill', { op: 'admit', nth: 1 }),
      ...{ voter: other, elsewhere: true, lengthMs: calmAtMs },
    },
  ];
}

/** The event is forgotten once or twice; a voter that knows of it goes, loses it, or is told of the completion only later. */
export function forgetting(random: Random, scale: Scale): Fault[] {
  const when = (): Fault['when'] =>
    random.chance(0.5)
      ? { atMs: scale.beginsMs + random.between(0.02, 1.5) * scale.lockTtlMs }
      : { op: random.pick(['complete', 'complete', 'extend', 'claim']), nth: random.integer(1, 2 * scale.voters) };
  const trouble = some(['stall', 'deaf', 'cut', 'kill', 'power cut', 'empty restart', 'flush', 'freeze', 'death']);
  return [
    fault(random, scale, 'forget', when()),
    ...sometimes(random, 0.3, fault(random, scale, 'forget', when())),
    ...(random.chance(0.7) ? trouble(random, scale).slice(0, 3) : []),
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
    lostMs: random.between(1, random.pick([300, 2000])),
  };
}
