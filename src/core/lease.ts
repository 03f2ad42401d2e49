/**
 * The watchdog: keeps a lease alive while work goes on under it (protocol section 4).
 *
 *     beating ──extend ok──▶ beating, next beat after a third of the lock's life
 *        └──extend failed──▶ again after a tenth of it, until validity has ended ──▶ lost
 *     lost: told once; the work cannot be undone, so extension goes on where it still can
 *
 * It ends by `stop()`, or by itself `maxHold` after the claim. `stop()` waits for a beat under way:
 * nothing may settle a lease while an extension of it is still in flight.
 */
import type { Claims, Clock, Events, Lease } from './ports.ts';

export interface HoldTimes {
  readonly lockTtlMs: number;
  /** How long a lock is left behind when the application did not answer. */
  readonly unknownHoldMs: number;
  /** Longest time that one attempt may hold its event. */
  readonly maxHoldMs: number;
}

export class Watchdog {
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;

  constructor(claims: Claims, lease: Lease, times: HoldTimes, clock: Clock, events: Events) {
    this.#ended = beat(claims, lease, times, clock, events, this.#stopping.signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort('stopped');
    await this.#ended;
  }
}

async function beat(
  claims: Claims,
  lease: Lease,
  times: HoldTimes,
  clock: Clock,
  events: Events,
  stopped: AbortSignal,
): Promise<void> {
  const untilMs = clock.now() + times.maxHoldMs;
  let lost = false;
  let pauseMs = times.lockTtlMs / 3;
  for (;;) {
    await clock.sleep(pauseMs, stopped);
    if (stopped.aborted || clock.now() >= untilMs) return;
    if (await claims.extend(lease)) {
      events.lockExtended('ok');
      pauseMs = times.lockTtlMs / 3;
      continue;
    }
    pauseMs = times.lockTtlMs / 10;
    if (lost || lease.validForMs() > 0) {
      events.lockExtended('failed');
    } else {
      lost = true;
      events.lockExtended('lost');
      events.lockFailed('lost');
    }
  }
}
