/** Claims over real voters, as two gateways of one service have them, without the gateways. */
import { createHash, randomBytes } from 'node:crypto';
import { systemClock } from '../../src/clock.ts';
import type { DeliveryKey } from '../../src/core/delivery.ts';
import type { Clock } from '../../src/core/ports.ts';
import { QuorumClaims, type ClaimOptions } from '../../src/redis/claims.ts';
import type { Membership } from '../../src/redis/membership.ts';
import { MemoryLink } from '../../src/redis/link.ts';
import type { Voter } from '../../src/redis/voter.ts';
import { createVoters, embeddedLink, redisLinks, type NamedLink } from '../../src/redis/voters.ts';
import { InterceptedLink } from './intercepted-link.ts';
import { recordedEvents, type RecordedEvents } from './recorded-events.ts';

export interface Quorum extends AsyncDisposable {
  readonly voters: readonly Voter[];
  readonly claims: QuorumClaims;
  readonly events: RecordedEvents;
}

/** Patient enough for a busy machine; the relations between them are the configuration's concern. */
export const patient: ClaimOptions = {
  lockTtlMs: 3_000,
  unknownHoldMs: 1_000,
  maxHoldMs: 60_000,
  budgetMs: 10_000,
  voterTimeoutMs: 2_000,
  retentionMs: 86_400_000,
};

export interface QuorumOptions {
  readonly claims?: Partial<ClaimOptions>;
  readonly firstStart?: 'wait' | 'trust';
  readonly clock?: Clock;
  /** While the set of voters changes; nobody is told of it without. */
  readonly membership?: Membership;
}

const nonce = (): string => randomBytes(9).toString('base64url');

/** `ports`: of Redis servers or of proxies before them; none: the embedded voter. Does not wait for anybody to be up. */
export function quorum(ports: readonly number[], options: QuorumOptions = {}): Quorum {
  const times = { ...patient, ...options.claims };
  return quorumOver(linksTo(ports, times.voterTimeoutMs), options);
}

export function quorumOver(links: readonly NamedLink[], options: QuorumOptions = {}): Quorum {
  const times = { ...patient, ...options.claims };
  const clock = options.clock ?? systemClock;
  const events = recordedEvents();
  const voters = createVoters(
    links,
    {
      timeoutMs: times.voterTimeoutMs,
      lifeMs: Math.max(times.lockTtlMs, times.unknownHoldMs),
      firstStart: options.firstStart ?? 'trust',
      nonce,
      ...(options.membership && { membership: options.membership }),
    },
    clock,
    events,
  );
  const claims = new QuorumClaims(voters, times, clock, events, options.membership?.lists);
  return { voters, claims, events, [Symbol.asyncDispose]: async () => await claims[Symbol.asyncDispose]() };
}

export function linksTo(ports: readonly number[], timeoutMs: number): NamedLink[] {
  if (ports.length === 0) return embeddedLink(systemClock);
  const node = { host: '127.0.0.1', username: undefined, password: undefined, tls: undefined };
  return redisLinks(
    { prefix: 'ho', timeoutMs, nodes: ports.map((port) => ({ ...node, port, name: `127.0.0.1:${port}` })) },
    systemClock,
  );
}

/** Voters in this process, behind links that a test can hold up. */
export function memoryLinks(
  count: number,
  clock: Clock = systemClock,
): (NamedLink & { readonly link: InterceptedLink })[] {
  return Array.from({ length: count }, (_, n) => ({
    name: `memory-${n}`,
    link: new InterceptedLink(new MemoryLink(() => clock.now())),
  }));
}

/** Resolves when this many voters count. */
export async function countedVoters(one: Quorum, count: number): Promise<void> {
  await one.events.until(() =>
    one.voters.filter((voter) => voter.eligible && voter.hold === '').length >= count ? true : undefined,
  );
}

/** An event that no other test has. */
export function freshKey(): DeliveryKey {
  return { id: randomBytes(16).toString('base64url') } as DeliveryKey;
}

/** The event of this name. */
export function keyOf(name: string): DeliveryKey {
  return { id: createHash('sha256').update(name).digest().subarray(0, 16).toString('base64url') } as DeliveryKey;
}
