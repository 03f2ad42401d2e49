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
 * time is over; one whose turn came in time forwards however long that takes.
 */
import type { DeliveryKey, Done, Outcome } from './delivery.ts';
import type { HoldTimes } from './lease.ts';
import type { Claims, Clock, Events } from './ports.ts';
import type { Route } from './route.ts';

/** What came of leading: an end, or another process holds the event. */
export type Led =
  /** `done`: what later copies are to be told, where the event is done now. */
  | { readonly kind: 'ended'; readonly outcome: Outcome; readonly done: Done | undefined }
  | { readonly kind: 'held'; readonly leftMs: number; readonly unknown: boolean };

/** What a waiter is called for: to lead, or to answer. */
type Call = { readonly kind: 'lead' } | { readonly kind: 'answer'; readonly outcome: Outcome };

interface Waiter {
  call(call: Call): void;
}

interface Room {
  readonly key: DeliveryKey;
  /** Oldest first. */
  readonly waiters: Waiter[];
  /** Somebody leads, or has just been called to. */
  led: boolean;
  watched: boolean;
  /** What is left of the holder's lock, as far as it is known here; with the instant it was learnt. */
  leftMs: number;
  learntMs: number;
}

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

  /** `lead` claims and delivers; it is called when, and as often as, it is this delivery's turn. */
  async pass(key: DeliveryKey, route: Route, lead: () => Promise<Led>): Promise<Outcome> {
    const untilMs = this.#clock.now() + route.inFlight.waitMs;
    const found = this.#rooms.get(key.id);
    const room = found ?? { key, waiters: [], led: true, watched: false, leftMs: this.#times.lockTtlMs, learntMs: this.#clock.now() };
    if (found) {
      if (route.inFlight.policy !== 'wait' || room.waiters.length >= route.inFlight.maxWaiters) return this.#comeAgain(room);
      const call = await this.#wait(room, route, untilMs, 'last');
      if (call.kind === 'answer') return call.outcome;
    } else {
      this.#rooms.set(key.id, room);
    }
    for (;;) {
      const led = await this.#lead(room, lead);
      if (led.kind === 'ended') return led.outcome;
      this.#learn(room, led.leftMs);
      if (route.inFlight.policy !== 'wait' || led.unknown) {
        this.#answerAll(room, this.#comeAgain(room));
        return this.#comeAgain(room);
      }
      const call = await this.#wait(room, route, untilMs, 'first');
      if (call.kind === 'answer') return call.outcome;
    }
  }

  async #lead(room: Room, lead: () => Promise<Led>): Promise<Led> {
    let led: Led | undefined;
    try {
      led = await lead();
      return led;
    } finally {
      room.led = false;
      if (led?.kind !== 'held') this.#ended(room, led);
    }
  }

  /** `led` is undefined after a bug in the leader: the others go on without it. */
  #ended(room: Room, led: (Led & { kind: 'ended' }) | undefined): void {
    if (led?.done) this.#answerAll(room, { kind: 'duplicate', done: led.done });
    else if (led?.outcome.kind === 'uncertain') {
      this.#learn(room, this.#times.unknownHoldMs);
      this.#answerAll(room, this.#comeAgain(room));
    } else this.#callOldest(room);
  }

  async #wait(room: Room, route: Route, untilMs: number, place: 'first' | 'last'): Promise<Call> {
    const { promise, resolve } = Promise.withResolvers<Call>();
    const waiter: Waiter = { call: resolve };
    if (place === 'first') room.waiters.unshift(waiter);
    else room.waiters.push(waiter);
    const cancel = this.#clock.timer(Math.max(0, untilMs - this.#clock.now()), () => {
      const index = room.waiters.indexOf(waiter);
      if (index < 0) return;
      room.waiters.splice(index, 1);
      waiter.call({ kind: 'answer', outcome: this.#comeAgain(room) });
      this.#closeIfEmpty(room);
    });
    if (!room.led && !room.watched) void this.#watch(room);
    this.#events.waiting(route.name, 1);
    try {
      return await promise;
    } finally {
      cancel();
      this.#events.waiting(route.name, -1);
    }
  }

  /** One watcher for all waiters of an event that another process holds. */
  async #watch(room: Room): Promise<void> {
    room.watched = true;
    let pauseMs = FIRST_PEEK_MS;
    while (room.waiters.length > 0) {
      await this.#clock.sleep(pauseMs);
      if (room.waiters.length === 0) break;
      pauseMs = Math.min(1.5 * pauseMs, LAST_PEEK_MS);
      const standing = await this.#claims.peek(room.key);
      if (standing.kind === 'done') {
        this.#answerAll(room, { kind: 'duplicate', done: standing.done });
      } else if (standing.kind === 'held') {
        this.#learn(room, standing.leftMs);
        if (standing.unknown) this.#answerAll(room, this.#comeAgain(room));
      } else if (standing.kind === 'free') {
        // Other processes see it free at the same time: not all at once.
        await this.#clock.sleep(this.#clock.random() * JITTER_MS);
        break;
      }
    }
    room.watched = false;
    this.#callOldest(room);
  }

  #learn(room: Room, leftMs: number): void {
    room.leftMs = leftMs;
    room.learntMs = this.#clock.now();
  }

  #comeAgain(room: Room): Outcome {
    return { kind: 'in-progress', retryAfterMs: Math.max(0, room.leftMs - (this.#clock.now() - room.learntMs)) };
  }

  #callOldest(room: Room): void {
    const oldest = room.waiters.shift();
    room.led = oldest !== undefined;
    oldest?.call({ kind: 'lead' });
    this.#closeIfEmpty(room);
  }

  #answerAll(room: Room, outcome: Outcome): void {
    for (const waiter of room.waiters.splice(0)) waiter.call({ kind: 'answer', outcome });
    this.#closeIfEmpty(room);
  }

  #closeIfEmpty(room: Room): void {
    if (!room.led && room.waiters.length === 0 && this.#rooms.get(room.key.id) === room) this.#rooms.delete(room.key.id);
  }
}
