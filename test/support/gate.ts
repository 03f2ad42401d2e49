/** The spine with everything around it in memory: what is claimed, forwarded, published and told can be looked at. */
import type { Outcome, Received, Trail } from '../../src/core/delivery.ts';
import { Background } from '../../src/core/background.ts';
import { handle } from '../../src/core/handle.ts';
import { InFlight } from '../../src/core/in-flight.ts';
import { createMemory } from '../../src/core/memory.ts';
import { observe } from '../../src/core/observe.ts';
import type { KeyRequest, SenderKeys } from '../../src/core/ports.ts';
import type { Route } from '../../src/core/route.ts';
import type { Sender } from '../../src/core/sender.ts';
import { createWorker, type WorkRules } from '../../src/worker.ts';
import { FakeClaims } from './fake-claims.ts';
import { FakeQueue, FakeQueueStore } from './fake-queue.ts';
import { FakeUpstream } from './fake-upstream.ts';
import { ManualClock } from './manual-clock.ts';
import { recordedEvents } from './recorded-events.ts';

const times = { lockTtlMs: 20_000, unknownHoldMs: 20_000, maxHoldMs: 900_000 };

const workRules: WorkRules = {
  attempts: 5,
  backoff: { firstMs: 1000, maxMs: 60_000 },
  nonRetryable: [],
  deadRetentionMs: 86_400_000,
};

/** What senders publish, by URL; what is not there cannot be had. */
export class FakeKeys implements SenderKeys {
  readonly asked: KeyRequest[] = [];
  readonly visited: string[] = [];
  readonly published = new Map<string, string>();
  /** How visits end. */
  answers = true;

  async get(request: KeyRequest): Promise<string | undefined> {
    this.asked.push(request);
    return this.published.get(request.url);
  }

  async visit(url: string): Promise<boolean> {
    this.visited.push(url);
    return this.answers;
  }
}

class ClockAt extends ManualClock {
  readonly #wallMs: number | undefined;

  constructor(wallMs: number | undefined) {
    super();
    this.#wallMs = wallMs;
  }

  override wall(): number {
    return this.#wallMs ?? super.wall();
  }
}

/** `wallSeconds`: where the wall clock stands still, for signatures that were made then. */
export function startGate(wallSeconds?: number) {
  const clock = new ClockAt(wallSeconds === undefined ? undefined : wallSeconds * 1000);
  const events = recordedEvents();
  const claims = new FakeClaims(times, clock);
  const upstream = new FakeUpstream(clock);
  const keys = new FakeKeys();
  const inFlight = new InFlight(claims, times, clock, events);
  const background = new Background();
  const memory = createMemory(1024 ** 2, () => undefined);
  const queue = new FakeQueue(new FakeQueueStore(), clock);
  const gate = {
    service: 'tests',
    claims,
    upstream,
    keys,
    clock,
    events,
    times,
    inFlight,
    background,
    queue,
    versions: claims,
  };
  return {
    ...{ clock, events, claims, upstream, keys, queue },
    /** Takes what is queued on these routes, from now on. */
    work: (routes: readonly Route[], rules: Partial<WorkRules> = {}): void =>
      queue.work(
        createWorker(
          gate,
          () => routes,
          { ...workRules, ...rules },
          memory,
          () => claims,
          undefined,
        ),
      ),
    handle: async (route: Route, delivery: Received, trail: Trail = {}): Promise<Outcome> =>
      await (route.observe ? observe : handle)(gate, route, delivery, trail),
  };
}

export function routeOf(sender: Sender, texts: readonly string[], change: Partial<Route> = {}): Route {
  return {
    name: sender.name,
    path: '/hook',
    sender: sender.name,
    signature: sender.signature,
    secrets: texts.map((text) => sender.decodeSecret(text) as Buffer),
    handshake: sender.handshake,
    identity: sender.identity,
    inFlight: { policy: 'reject', waitMs: 0, maxWaiters: 0 },
    onUnavailable: 'reject',
    duplicateReply: 'empty',
    successStatus: sender.successStatus,
    completeOn: [],
    retentionMs: 86_400_000,
    ...change,
  };
}
