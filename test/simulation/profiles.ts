/**
 * Kinds of runs. Each looks for trouble in its own place, and mixes what belongs together: rare schedules become
 * frequent enough to be met within some thousand seeds.
 */
import {
  broken,
  crowded,
  failing,
  failingAtTheBeat,
  lasting,
  mixed,
  timely,
  tireless,
  troubled,
  willing,
} from './application-plans.ts';
import {
  acknowledgedLongAgo,
  asleepToTheEnd,
  bareQuorum,
  forgetting,
  metTooLate,
  minorityAway,
  oneAfterAnother,
  oneAway,
  oneByOne,
  relearnt,
  restartedTwice,
  some,
  soonAfter,
  takingTurns,
  type FaultPlan,
} from './fault-plans.ts';
import { FAULT_KINDS, type ApplicationPlan } from './plan.ts';
import type { Random } from './random.ts';

export interface Profile {
  readonly name: string;
  readonly weight: number;
  readonly quiet?: true;
  /** Messages are lost and late already while gateways and voters meet for the first time. */
  readonly troubledStart?: true;
  /** The deadline of a voter is as long as the rules allow. */
  readonly patientVoters?: true;
  readonly gateways: readonly [number, number];
  readonly copies: readonly [number, number];
  /** When copies come after the first, in lives of a lock. */
  readonly spread: readonly (readonly [number, number])[];
  readonly loss: number;
  readonly tail: number;
  /** Probability that what comes late comes about the deadline of a voter, and not about the end of a lock. */
  readonly tailInTime: number;
  /** Probability of `firstStart: trust`, and of an append-only file. */
  readonly trust: number;
  readonly aof: number;
  /** Probability that an append-only file is written before every answer. */
  readonly always: number;
  /** How long until everything is calm, and the time limit for the application, in lives of a lock. */
  readonly lasts: readonly [number, number];
  readonly patience: readonly [number, number];
  /** How long an attempt may hold its event beyond the application's time, likewise. */
  readonly hold: readonly [number, number];
  readonly lockTtlMs: readonly number[];
  readonly application: (random: Random, lockTtlMs: number) => ApplicationPlan;
  readonly faults: FaultPlan;
}

const ordinary: Omit<Profile, 'name' | 'weight'> = {
  gateways: [2, 3],
  copies: [2, 3],
  spread: [
    [0, 0],
    [0, 0.003],
    [0, 0.05],
    [0, 0.3],
    [0, 1],
    [0, 2],
  ],
  loss: 0,
  tail: 0,
  tailInTime: 0.5,
  trust: 0.9,
  aof: 0.8,
  always: 0,
  lasts: [0.7, 2.5],
  patience: [0.1, 1.5],
  hold: [0.5, 5],
  lockTtlMs: [500, 800, 1200],
  application: mixed,
  faults: () => [],
};

const duringFirstStart = some(['flush', 'flush', 'stall', 'empty restart'], ['trust', 'hello', 'claim', 'complete']);

export const PROFILES: readonly Profile[] = [
  // Many at once, at most a minority of voters away from the start: one forward, attempt 1, nobody left behind.
  {
    ...ordinary,
    name: 'storm',
    weight: 2,
    quiet: true,
    trust: 1,
    gateways: [2, 4],
    copies: [3, 6],
    patience: [3, 4],
    application: willing,
    faults: minorityAway,
  },
  // Only asked for by name: twenty copies at one instant over four gateways, one voter away.
  {
    ...ordinary,
    name: 'twenty at once',
    weight: 0,
    quiet: true,
    trust: 1,
    gateways: [4, 4],
    copies: [20, 20],
    spread: [[0, 0]],
    patience: [3, 4],
    application: willing,
    faults: oneAway,
  },
  // Voters restart empty one after another, each after the one before is whole again: no lock may be lost. One copy, so
  // that its lock begins on every voter: one that begins on a bare quorum is lost with any of its voters.
  {
    ...ordinary,
    name: 'rolling',
    weight: 0.5,
    quiet: true,
    copies: [1, 1],
    aof: 0,
    lasts: [4, 6],
    patience: [6, 7],
    application: tireless,
    faults: oneByOne,
  },
  // Requests and replies are lost, or come late.
  { ...ordinary, name: 'lossy', weight: 3, loss: 0.3, tail: 0.1 },
  { ...ordinary, name: 'slow', weight: 2, tail: 0.25 },
  { ...ordinary, name: 'application', weight: 2, loss: 0.1, application: troubled },
  {
    ...ordinary,
    name: 'network',
    weight: 2,
    loss: 0.05,
    tail: 0.05,
    faults: some(['cut', 'stall', 'deaf', 'freeze', 'script flush']),
  },
  {
    ...ordinary,
    name: 'voters',
    weight: 2,
    always: 0.25,
    tail: 0.05,
    faults: some(['kill', 'power cut', 'freeze', 'cut']),
  },
  {
    ...ordinary,
    name: 'amnesia',
    weight: 2,
    loss: 0.1,
    lasts: [1, 5],
    faults: some(['empty restart', 'flush', 'power cut', 'kill', 'freeze']),
  },
  {
    ...ordinary,
    name: 'gateways',
    weight: 2,
    loss: 0.1,
    application: troubled,
    faults: some(['lapse', 'death', 'cut']),
  },
  {
    ...ordinary,
    name: 'everything',
    weight: 3,
    loss: 0.15,
    tail: 0.05,
    application: troubled,
    faults: some(FAULT_KINDS),
  },
  // What was in flight while voters were trusted for the first time.
  {
    ...ordinary,
    name: 'first start',
    weight: 0.5,
    troubledStart: true,
    trust: 1,
    tail: 0.1,
    loss: 0.08,
    lasts: [1.5, 3],
    patience: [1, 3],
    application: (random, lockTtlMs) => (random.chance(0.8) ? lasting : mixed)(random, lockTtlMs),
    faults: (random, scale) => (random.chance(0.7) ? metTooLate(random, scale) : duringFirstStart(random, scale)),
  },
  // A gateway sleeps between its claim and its first byte.
  {
    ...ordinary,
    name: 'asleep',
    weight: 1,
    lasts: [2, 4],
    spread: [
      [0, 0.3],
      [0, 1],
      [0, 2],
    ],
    application: crowded,
    faults: soonAfter(['claim', 'claim', 'confirm'], ['lapse']),
  },
  // Voters lose what they have just acknowledged.
  {
    ...ordinary,
    name: 'acknowledged',
    weight: 1,
    gateways: [1, 2],
    copies: [3, 5],
    spread: [
      [0, 0.05],
      [0, 0.3],
    ],
    loss: 0.35,
    tail: 0.1,
    tailInTime: 1,
    lasts: [1, 3],
    faults: soonAfter(
      ['claim', 'complete', 'complete', 'complete', 'extend'],
      ['empty restart', 'power cut', 'flush', 'flush', 'flush', 'stall', 'death', 'death'],
    ),
  },
  // A claim that reads one voter before a completion comes there, and another after.
  {
    ...ordinary,
    name: 'straddling',
    weight: 1,
    patientVoters: true,
    tail: 0.4,
    tailInTime: 1,
    copies: [5, 7],
    spread: [
      [0.85, 1.15],
      [0.9, 1.15],
    ],
    lasts: [1.4, 1.6],
    patience: [1.2, 1.5],
    application: timely,
    faults: asleepToTheEnd,
  },
  // One failure after another, told to other voters each time.
  {
    ...ordinary,
    name: 'taking turns',
    weight: 1,
    aof: 1,
    always: 1,
    loss: 0.2,
    copies: [3, 5],
    application: failing,
    faults: takingTurns,
  },
  // Votes are split, and the releases of those who try again are late, for an owner who works long.
  {
    ...ordinary,
    name: 'contended',
    weight: 1,
    loss: 0.35,
    gateways: [3, 4],
    copies: [4, 6],
    spread: [[0, 0.003]],
    patience: [2, 3],
    application: lasting,
  },
  // A failure that comes while the watchdog puts the lock back.
  {
    ...ordinary,
    name: 'at the beat',
    weight: 0.5,
    loss: 0.3,
    tail: 0.3,
    tailInTime: 1,
    patience: [1, 1.5],
    application: failingAtTheBeat,
  },
  // A voter loses the locks that it has just granted to somebody who is still at work.
  {
    ...ordinary,
    name: 'bare quorum',
    weight: 1,
    aof: 1,
    spread: [
      [0.1, 1.2],
      [0.1, 1.2],
    ],
    lasts: [1.5, 2.5],
    patience: [2, 3],
    application: lasting,
    faults: bareQuorum,
  },
  // An acknowledgement that outlives the memory of the voter that gave it.
  {
    ...ordinary,
    name: 'long ago',
    weight: 0.05,
    aof: 1,
    trust: 1,
    gateways: [2, 2],
    copies: [2, 3],
    spread: [[14, 17]],
    lockTtlMs: [1200],
    lasts: [17, 18],
    hold: [20, 25],
    patience: [1, 1.5],
    application: timely,
    faults: acknowledgedLongAgo,
  },
  // Copies that come long after the event was handled, when those who know it have changed.
  {
    ...ordinary,
    name: 'late copies',
    weight: 0.5,
    loss: 0.2,
    copies: [4, 6],
    spread: [
      [0, 0.5],
      [2.5, 6.5],
    ],
    lockTtlMs: [800, 1200],
    lasts: [6.5, 7],
    patience: [0.5, 1.5],
    faults: oneAfterAnother,
  },
  // An operator has the event forgotten, with force or without, and copies come that were not to be duplicates any more.
  {
    ...ordinary,
    name: 'forgotten',
    weight: 1,
    loss: 0.1,
    copies: [3, 5],
    spread: [
      [0, 0.5],
      [0.3, 3],
    ],
    lasts: [2, 4],
    patience: [0.5, 1.5],
    faults: forgetting,
  },
  // What a voter learns while others claim the event there in vain.
  {
    ...ordinary,
    name: 'relearnt',
    weight: 0.2,
    aof: 1,
    trust: 1,
    gateways: [2, 2],
    copies: [5, 7],
    spread: [
      [0.2, 3],
      [0.2, 3],
    ],
    lasts: [6, 7],
    application: broken,
    faults: relearnt,
  },
  // A hold that has not run out when its voter starts again.
  {
    ...ordinary,
    name: 'on hold',
    weight: 0.5,
    trust: 0,
    aof: 0.9,
    copies: [3, 4],
    spread: [
      [0, 0.01],
      [0.5, 3],
    ],
    lasts: [4, 6],
    patience: [5, 6],
    application: tireless,
    faults: restartedTwice,
  },
];
