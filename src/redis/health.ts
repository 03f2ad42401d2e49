/**
 * Whether a voter is what the quorum takes it for (protocol section 6, last paragraph). Looked at whenever it was greeted:
 *
 * - Two of them with one memory are one voter: the later in the list does not count. Told by the boot, which no two share.
 * - A replica knows what its primary chose to tell it, and may forget it again: it does not count.
 * - A clock that steps forward ends locks before their time: hold=locks, as after a restart. One that steps back
 *   only keeps them longer. Both our clocks must agree that it was the voter's: ours step too, and stop in a suspended machine.
 * - A policy that evicts makes room by forgetting events: told, and left to the operator.
 */
import type { Clock, Events } from '../core/ports.ts';
import type { Facts } from './facts.ts';
import type { Voter } from './voter.ts';

/** Less is within what the hold and the drift allow for. */
const STEP_MS = 250;

/** Where the voter's clock was, seen from ours: between `low` and `high`, milliseconds. */
interface Offset {
  readonly low: number;
  readonly high: number;
}

interface Seen {
  readonly boot: string;
  readonly byClock: Offset;
  readonly byWall: Offset;
}

export class Health {
  readonly #voters: readonly Voter[];
  readonly #clock: Clock;
  readonly #events: Events;
  /** By voter and server. */
  readonly #seen = new Map<string, Seen>();
  readonly #evictions = new Map<Voter, string>();
  readonly #silentAbout = new Map<Voter, string>();

  constructor(voters: readonly Voter[], clock: Clock, events: Events) {
    this.#voters = voters;
    this.#clock = clock;
    this.#events = events;
  }

  /** At once, before anything that the voter says can count. */
  met(voter: Voter): void {
    const twin = this.#voters.slice(0, this.#voters.indexOf(voter)).find((earlier) => earlier.isTwinOf(voter));
    const why = twin && `the same server as ${twin.name}`;
    if (why !== undefined && why !== voter.unfit) {
      this.#events.warn('two of redis.nodes are the same server: only the first of them counts', {
        nodes: [twin!.name, voter.name],
      });
    }
    if (why !== undefined || voter.unfit?.startsWith('the same') === true) voter.refuse(why);
  }

  async look(voter: Voter): Promise<void> {
    const before = { clock: this.#clock.now(), wall: this.#clock.wall() };
    const servers = await voter.facts();
    if (!servers || servers.length === 0) return;
    const after = { clock: this.#clock.now(), wall: this.#clock.wall() };
    this.#role(voter, servers);
    this.#eviction(voter, servers);
    this.#hidden(voter, servers);
    voter.appendfsync = appendfsyncOf(servers);
    for (const { server, timeMs } of servers) {
      if (timeMs === undefined) continue;
      const offset = (from: number, to: number): Offset => ({ low: timeMs - to, high: timeMs - from });
      await this.#time(voter, server, {
        boot: voter.boot,
        byClock: offset(before.clock, after.clock),
        byWall: offset(before.wall, after.wall),
      });
    }
  }

  #role(voter: Voter, servers: readonly Facts[]): void {
    const replica = servers.some(({ role }) => role !== undefined && role !== 'master');
    if (replica && voter.unfit === undefined) {
      this.#events.warn('a voter is a replica and does not count: redis.nodes wants independent primaries', {
        node: voter.name,
      });
      voter.refuse('a replica');
    }
    if (!replica && voter.unfit === 'a replica') voter.refuse(undefined);
  }

  #eviction(voter: Voter, servers: readonly Facts[]): void {
    const { evictionPolicy } = servers.find((each) => each.evictionPolicy !== 'noeviction') ?? servers[0]!;
    const evicted = servers.map(({ evictedKeys }) => evictedKeys);
    const evictedKeys = evicted.reduce((sum, keys) =>
      sum === undefined || keys === undefined ? undefined : sum + keys,
    );
    const now = `${evictionPolicy} ${evictedKeys}`;
    if (this.#evictions.get(voter) === now) return;
    this.#evictions.set(voter, now);
    this.#events.voterEviction(voter.name, evictionPolicy, evictedKeys);
  }

  #hidden(voter: Voter, servers: readonly Facts[]): void {
    const hidden = [
      ...new Set(
        servers.flatMap((facts) =>
          Object.entries(facts).flatMap(([name, value]) => (value === undefined ? [name] : [])),
        ),
      ),
    ];
    const now = hidden.join();
    if ((this.#silentAbout.get(voter) ?? '') === now) return;
    this.#silentAbout.set(voter, now);
    if (now !== '')
      this.#events.warn('a voter does not tell everything about itself: policy unknown, goes on without', {
        node: voter.name,
        hidden,
      });
  }

  async #time(voter: Voter, server: string, now: Seen): Promise<void> {
    const key = `${voter.name} ${server}`;
    const before = this.#seen.get(key);
    this.#seen.set(key, now);
    if (before?.boot !== now.boot) return;
    const steps = [stepBetween(before.byClock, now.byClock), stepBetween(before.byWall, now.byWall)];
    const stepMs = Math.round(
      steps.every((step) => step > 0) ? Math.min(...steps) : steps.every((step) => step < 0) ? Math.max(...steps) : 0,
    );
    if (Math.abs(stepMs) < STEP_MS) return;
    this.#events.warn('the clock of a voter has stepped', { node: voter.name, stepMs });
    if (stepMs > 0) await voter.stepped(now.boot);
  }
}

/** By how much the clock must have stepped at least; 0 where it may not have. */
function stepBetween(before: Offset, now: Offset): number {
  if (now.low > before.high) return now.low - before.high;
  return now.high < before.low ? now.high - before.low : 0;
}

function appendfsyncOf(servers: readonly Facts[]): 'always' | 'other' | undefined {
  if (servers.some(({ appendfsync }) => appendfsync === undefined)) return undefined;
  return servers.every(({ appendfsync }) => appendfsync === 'always') ? 'always' : 'other';
}
