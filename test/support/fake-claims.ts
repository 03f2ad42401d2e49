/** Claims in this process's memory, as plainly as the port allows: one voter, no network, nothing in the background. */
import type { DeliveryKey, Done } from '../../src/core/delivery.ts';
import type {
  ClaimResult,
  Claims,
  Clock,
  Completion,
  Lease,
  Standing,
  VersionChange,
  Versions,
  VersionStore,
} from '../../src/core/ports.ts';
import { FakeVersions } from './fake-versions.ts';

export interface FakeTimes {
  readonly lockTtlMs: number;
  readonly unknownHoldMs: number;
  readonly maxHoldMs: number;
}

interface Event {
  lock: { readonly lease: FakeLease; untilMs: number; unknown: boolean } | undefined;
  attempts: number;
  done: Done | undefined;
  /** When attempts and done are no longer remembered. */
  untilMs: number;
}

class FakeLease implements Lease {
  readonly key: DeliveryKey;
  readonly attempt: number;
  readonly retentionMs: number;
  readonly memorySinceMs = undefined;
  validUntilMs: number;
  readonly #clock: Clock;
  readonly #minWorkMs: number;

  constructor(key: DeliveryKey, attempt: number, retentionMs: number, lockTtlMs: number, clock: Clock) {
    this.key = key;
    this.attempt = attempt;
    this.retentionMs = retentionMs;
    this.validUntilMs = clock.now() + lockTtlMs;
    this.#clock = clock;
    this.#minWorkMs = lockTtlMs / 3;
  }

  validForMs(): number {
    return this.validUntilMs - this.#clock.now();
  }

  mayStart(): boolean {
    return this.validForMs() > this.#minWorkMs;
  }
}

export class FakeClaims implements Claims, VersionStore {
  /** What was asked, in order: `claim`, `extend`, `complete 200`, `release sent`… */
  readonly calls: string[] = [];
  /** False: no quorum. Claims are unavailable, nothing is extended, and completions and releases reach nobody. */
  reachable = true;
  /** False: no quorum for versions alone. */
  ordered = true;
  readonly #events = new Map<string, Event>();
  readonly #times: FakeTimes;
  readonly #clock: Clock;
  readonly #versions: FakeVersions;

  constructor(times: FakeTimes, clock: Clock) {
    this.#versions = new FakeVersions(clock);
    this.#times = times;
    this.#clock = clock;
  }

  async claim(key: DeliveryKey, retentionMs: number): Promise<ClaimResult> {
    this.calls.push('claim');
    if (!this.reachable) return { kind: 'unavailable' };
    const standing = this.#standing(key);
    if (standing.kind === 'done') return standing;
    if (standing.kind === 'held') return { ...standing, split: false };
    const { lockTtlMs, maxHoldMs } = this.#times;
    const event = this.#event(key);
    const now = this.#clock.now();
    event.attempts += 1;
    event.untilMs = now + Math.max(retentionMs, maxHoldMs + lockTtlMs);
    const lease = new FakeLease(key, event.attempts, retentionMs, lockTtlMs, this.#clock);
    event.lock = { lease, untilMs: now + lockTtlMs, unknown: false };
    return { kind: 'won', lease };
  }

  async extend(lease: Lease): Promise<boolean> {
    this.calls.push('extend');
    const lock = this.#lockOf(lease);
    if (!lock) return false;
    lock.untilMs = this.#clock.now() + this.#times.lockTtlMs;
    lock.lease.validUntilMs = lock.untilMs;
    return true;
  }

  async complete(lease: Lease, completion: Completion): Promise<void> {
    this.calls.push(`complete ${completion.status}`);
    if (!this.reachable) return;
    const event = this.#event(lease.key);
    if (this.#lockOf(lease)) event.lock = undefined;
    event.attempts = Math.max(event.attempts, lease.attempt);
    if (event.done) return;
    event.done = { ...completion, wallMs: this.#clock.wall() };
    event.untilMs = this.#clock.now() + (lease as FakeLease).retentionMs;
  }

  async release(lease: Lease, sent: boolean): Promise<void> {
    this.calls.push(sent ? 'release sent' : 'release unsent');
    if (!this.#lockOf(lease)) return;
    const event = this.#event(lease.key);
    event.lock = undefined;
    if (!sent && !event.done && event.attempts === lease.attempt) event.attempts -= 1;
  }

  async leave(lease: Lease): Promise<void> {
    this.calls.push('leave');
    const lock = this.#lockOf(lease);
    if (!lock) return;
    lock.untilMs = this.#clock.now() + this.#times.unknownHoldMs;
    lock.unknown = true;
  }

  async peek(key: DeliveryKey): Promise<Standing> {
    this.calls.push('peek');
    return this.reachable ? this.#standing(key) : { kind: 'unavailable' };
  }

  async order(change: VersionChange): Promise<Versions | 'unavailable'> {
    return this.reachable && this.ordered ? await this.#versions.order(change) : 'unavailable';
  }

  #standing(key: DeliveryKey): Exclude<Standing, { kind: 'unavailable' }> {
    const { done, lock } = this.#event(key);
    if (done) return { kind: 'done', done };
    if (lock) return { kind: 'held', leftMs: lock.untilMs - this.#clock.now(), unknown: lock.unknown };
    return { kind: 'free' };
  }

  /** The lock, if it is this lease's and can be reached. */
  #lockOf(lease: Lease): Event['lock'] {
    const { lock } = this.#event(lease.key);
    return this.reachable && lock?.lease === lease ? lock : undefined;
  }

  #event(key: DeliveryKey): Event {
    const now = this.#clock.now();
    let event = this.#events.get(key.id);
    if (!event || event.untilMs <= now) {
      event = { lock: event?.lock, attempts: 0, done: undefined, untilMs: Infinity };
      this.#events.set(key.id, event);
    }
    if (event.lock && event.lock.untilMs <= now) event.lock = undefined;
    return event;
  }
}
