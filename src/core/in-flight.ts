/**
 * Copies of an event that is in flight (protocol section 5). Inside a process one delivery at a time
 * claims and forwards an event, its leader; the copies that come meanwhile wait in the order they came.
 *
 *     first delivery ──▶ leader ──claims──▶ forwards ──▶ ended
 *                          │ held by another process
 *                          ▼
 *                       watched: one peek for all, 50 ms growing to 250 ms
 *
 *     ended: success or done ──▶ every waiter is a duplicate
 *            failure, unreachable, unavailable, overloaded, too late ──▶ the oldest waiter leads
 *            unknown ──▶ every waiter is told to come again
 *     watched: done ──▶ duplicates · free ──▶ the oldest leads · unknown ──▶ come again · held ──▶ peek again
 *
 * So an application that fails sees one copy at a time, and never two. A waiter gives up when its own
 * time is over; one whose turn came in time forwards however long that takes. Copies that are not to wait
 * for the application still wait for the leader's claim, by which the event may turn out to be done.
 */
import type { DeliveryKey, Done, Outcome } from './delivery.ts';
import type { HoldTimes } from './lease.ts';
import type { ClaimResult, Claims, Clock, Events } from './ports.ts';
import { Room, type Call } from './room.ts';
import type { Route } from './route.ts';

/** What came of leading: an end, or another process holds the event. */
export type Led =
  /** `done`: what later copies are to be told, where the event is done now. */
  | { readonly kind: 'ended'; readonly outcome: Outcome; readonly done: Done | undefined }
  | Extract<ClaimResult, { kind: 'held' }>;

/** Claims and delivers; tells by `forwarding` that the event goes to the application now. */
export type Lead = (forwarding: () => void) => Promise<Led>;

const FIRST_PEEK_MS = 50;
const LAST_PEEK_MS = 250;
const JITTER_MS = 50;

export class InFlight {
  readonly #rooms = new Map<string, Room>();
  readonly #claims: Claims;
  readonly #clock: Clock;
  readonly #events: Events;
  readonly #times: HoldTimes;

  constructor(claims: Claims, times: HoldTimes, clock: Clock, events: Events) {
    this.#claims = claims;
    this.#times = times;
    this.#clock = clock;
    this.#events = events;
  }

  /** `lead` is called when, and as often as, it is this delivery's turn. */
  async pass(key: DeliveryKey, route: Route, lead: Lead): Promise<Outcome> {
    const { policy, waitMs } = route.inFlight;
    const untilMs = this.#clock.now() + waitMs;
    const found = this.#rooms.get(key.id);
    const room = found ?? this.#open(key);
    if (found) {
      if (policy !== 'wait' && room.forwarding) return room.comeAgain();
      const call = await this.#wait(room, route, 'last', untilMs);
      if (call.kind === 'answer') return call.outcome;
    }
    for (;;) {
      const led = await this.#lead(room, route, lead);
      if (led.kind === 'ended') return led.outcome;
      if (policy !== 'wait' || led.unknown) {
        const outcome: Outcome = led.split ? { ...room.comeAgain(), split: true } : room.comeAgain();
        room.answerAll(outcome);
        return outcome;
      }
      const call = await this.#wait(room, route, 'first', untilMs);
      if (call.kind === 'answer') return call.outcome;
    }
  }

  #open(key: DeliveryKey): Room {
    const room = new Room(key, this.#times.lockTtlMs, this.#clock, () => this.#rooms.delete(key.id));
    this.#rooms.set(key.id, room);
    return room;
  }

  async #lead(room: Room, route: Route, lead: Lead): Promise<Led> {
    room.learn(this.#times.lockTtlMs);
    let led: Led | undefined;
    try {
      led = await lead(() => {
        room.forwarding = true;
        // Until here the event may as well have turned out to be done.
        if (route.inFlight.policy !== 'wait') room.answerAll(room.comeAgain());
      });
      return led;
    } finally {
      room.led = false;
      room.forwarding = false;
      room.blockedBy = led?.kind === 'held' ? led.of : undefined;
      if (led?.kind === 'held') room.learn(led.leftMs);
      else this.#ended(room, led);
    }
  }

  /** `led` is undefined after a bug in the leader: the others go on without it. */
  #ended(room: Room, led: Extract<Led, { kind: 'ended' }> | undefined): void {
    if (led?.done) {
      room.answerAll({ kind: 'duplicate', done: led.done });
    } else if (led?.outcome.kind === 'uncertain') {
      room.learn(this.#times.unknownHoldMs);
      room.answerAll(room.comeAgain());
    } else {
      room.callOldest();
    }
  }

  async #wait(room: Room, route: Route, place: 'first' | 'last', untilMs: number): Promise<Call> {
    const called = room.wait(place, untilMs, route.inFlight.maxWaiters);
    if (!room.led && !room.watched) void this.#watch(room);
    this.#events.waiting(route.name, 1);
    const call = await called;
    this.#events.waiting(route.name, -1);
    return call;
  }

  /** One watcher for all waiters of an event that another process holds. Never rejects. */
  async #watch(room: Room): Promise<void> {
    room.watched = true;
    try {
      await this.#peekWhileHeld(room);
    } catch (error) {
      // A bug: the oldest goes on to claim, and answers for what it meets there.
      this.#events.warn('watching an event in flight failed unexpectedly', { error });
    }
    room.watched = false;
    room.callOldest();
  }

  /** Ends when the event looks free, or nobody waits any more. */
  async #peekWhileHeld(room: Room): Promise<void> {
    for (let pauseMs = FIRST_PEEK_MS; ; pauseMs = Math.min(1.5 * pauseMs, LAST_PEEK_MS)) {
      await this.#clock.sleep(pauseMs);
      if (room.waiting === 0) return;
      const { key, blockedBy } = room;
      const standing = await this.#claims.peek(blockedBy ?? key);
      // What stood in the way is over; what has become of the event itself only a claim tells.
      if (blockedBy && standing.kind === 'done') return;
      switch (standing.kind) {
        case 'free':
          // Other processes see it free at the same time: not all at once.
          return await this.#clock.sleep(this.#clock.random() * JITTER_MS);
        case 'done':
          return room.answerAll({ kind: 'duplicate', done: standing.done });
        case 'held':
          room.learn(standing.leftMs);
          if (standing.unknown) return room.answerAll(room.comeAgain());
          break;
        case 'unavailable':
          break;
      }
    }
  }
}
