/** Claims without a gateway: claim and complete of ours, acquire and release of `redlock` as its documentation uses it. */
import { Redis } from 'ioredis';
import Redlock from 'redlock';
import { systemClock } from '../../src/clock.ts';
import { until } from '../../src/demo/until.ts';
import type { Events } from '../../src/core/ports.ts';
import { QuorumClaims } from '../../src/redis/claims.ts';
import { createVoters } from '../../src/redis/voters.ts';
import { freshKey, linksTo, patient } from '../support/quorum.ts';
import { serve } from './worker.ts';

export const SORTS = ['claims', 'redlock', 'redlock, autopipelining'] as const;
export type Sort = (typeof SORTS)[number];

export interface VotesTask {
  readonly sort: Sort;
  readonly redisPorts: readonly number[];
  readonly atOnce: number;
  /** Until time or number is used up. */
  readonly ms?: number;
  readonly pairs?: number;
}

export interface VotesAnswer {
  readonly pairs: number;
  readonly ms: number;
}

const RETENTION_MS = 86_400_000;
const LOCK_MS = 20_000;
type Pair = () => Promise<void>;
const made = new Map<Sort, Promise<Pair>>();

serve(async ({ sort, redisPorts, atOnce, ms = Infinity, pairs: most = Infinity }: VotesTask): Promise<VotesAnswer> => {
  if (!made.has(sort)) made.set(sort, sort === 'claims' ? ourPair(redisPorts) : redlockPair(redisPorts, sort));
  const pair = await made.get(sort)!;
  let [begun, pairs] = [0, 0];
  const startedMs = performance.now();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (begun < most && performance.now() - startedMs < ms) {
        begun += 1;
        await pair();
        pairs += 1;
      }
    }),
  );
  return { pairs, ms: performance.now() - startedMs };
});

async function ourPair(redisPorts: readonly number[]): Promise<Pair> {
  const events = new Proxy({}, { get: () => () => undefined }) as Events;
  const nonce = (): string => freshKey().id;
  const options = { timeoutMs: patient.voterTimeoutMs, lifeMs: LOCK_MS, firstStart: 'trust', nonce } as const;
  const voters = createVoters(linksTo(redisPorts, patient.voterTimeoutMs), options, systemClock, events);
  const claims = new QuorumClaims(voters, { ...patient, lockTtlMs: LOCK_MS }, systemClock, events);
  const counted = (): boolean => voters.every((voter) => voter.eligible && voter.hold === '');
  await until(systemClock, 'voters that count', () => counted() || undefined);
  return async () => {
    const result = await claims.claim(freshKey(), RETENTION_MS);
    if (result.kind !== 'won') throw new Error(`a claim of a new event ended ${result.kind}`);
    await claims.complete(result.lease, { status: 200, traceId: '', reply: undefined });
  };
}

async function redlockPair(redisPorts: readonly number[], sort: Exclude<Sort, 'claims'>): Promise<Pair> {
  const enableAutoPipelining = sort === 'redlock, autopipelining';
  const redlock = new Redlock(redisPorts.map((port) => new Redis(port, '127.0.0.1', { enableAutoPipelining })));
  return async () => {
    const lock = await redlock.acquire([freshKey().id], LOCK_MS);
    await lock.release();
  };
}
