/**
 * The script's rules over a map in this process: the embedded voter's memory, and the voters of the
 * simulation. `test/contract/script.test.ts` holds it against the real script on a real Redis.
 */
import { lockHoldMs, type Answer, type BatchAnswer, type Hold, type Item } from './items.ts';

interface Lock {
  token: string;
  attempt: number;
  counted: boolean;
  unknown: boolean;
  untilMs: number;
}
interface Record {
  done: boolean;
  attempt: number;
  floor: number;
  content: string;
  untilMs: number;
}
/** The keys of one event; gone once both have run out. */
interface Entry {
  lock: Lock | undefined;
  record: Record | undefined;
  versions?: Versions | undefined;
}
interface Versions {
  applied: string;
  pending: string;
  untilMs: number;
}

/** How a voter starts: `runId` of the process, and whether a restart keeps its keys (AOF). */
export interface ModelOptions {
  readonly now: () => number;
  readonly runId?: string;
  readonly aof?: boolean;
}

export class VoterModel {
  readonly #now: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #aof: boolean;
  #runId: string;
  #marker: { boot: string; runId: string; lifeMs: number; lostWallMs: number; always: boolean } | undefined;
  readonly #gateways = new Map<string, { own: string; untilMs: number }>();
  #sync: { token: string; untilMs: number } | undefined;
  #hold: { why: Hold; untilMs: number } | undefined;
  #sweepAt = 1024;

  constructor(options: ModelOptions) {
    this.#now = options.now;
    this.#aof = options.aof ?? false;
    this.#runId = options.runId ?? 'embedded';
  }

  run(batch: readonly Item[]): BatchAnswer {
    const answers = batch.map((item) => this.#answer(item));
    return { boot: this.#boot(), held: this.#held(), answers };
  }

  /** The voter's process starts again, with its keys (`keep`) or without. */
  restart(runId: string, keep: boolean): void {
    this.#runId = runId;
    if (!keep) this.flush();
  }

  /** FLUSHALL: everything is gone, the process goes on. */
  flush(): void {
    this.#entries.clear();
    this.#marker = undefined;
    this.#hold = undefined;
    this.#sync = undefined;
    this.#gateways.clear();
  }

  /** Every event that has a record. */
  ids(): string[] {
    const now = this.#now();
    return [...this.#entries.keys()].filter((id) => {
      const { record, versions } = this.#look(id, now);
      return record !== undefined || versions !== undefined;
    });
  }

  /** Writes an open record, as a forget leaves it. */
  write(id: string, record: { readonly attempt: number; readonly floor: number; readonly lifeMs: number }): void {
    const { attempt, floor, lifeMs } = record;
    this.#put(id, { record: { done: false, attempt, floor, content: '', untilMs: this.#now() + lifeMs } });
  }

  #boot(): string {
    return this.#marker?.boot ?? '';
  }

  #held(): boolean {
    if (this.#hold && this.#hold.untilMs <= this.#now()) this.#hold = undefined;
    return this.#hold !== undefined;
  }

  #answer(item: Item): Answer {
    if (item.op === 'hello') return this.#hello(item);
    if (item.op === 'stepped') return this.#stepped(item.boot, item.nonce);
    if (item.op === 'relearn') return this.#relearn(item.boot, item.nonce);
    if (item.op === 'present') return this.#present(item);
    if (item.op === 'trust') return this.#lift(item.boot, ['empty'], 0);
    if (item.op === 'admit') return this.#lift(item.boot, ['empty', 'records'], item.lostWallMs);
    if (item.op === 'sync') return this.#right(item.token, item.lockMs);
    if (item.op === 'order') return this.#order(item);
    const now = this.#now();
    const { lock, record, versions } = this.#look(item.id, now);
    if (item.op === 'read' && versions) return this.#versionsOf(versions);
    const rec = { attempt: record?.attempt ?? 0, floor: record?.floor ?? 0 };
    const counted = !this.#held();
    const ours = lock && 'token' in item && lock.token === item.token ? lock : undefined;
    const ok = (isCounted: boolean): Answer => ({ status: 'ok', counted: isCounted, ...rec });
    const done = (): Answer => ({
      status: 'done',
      ...rec,
      content: record!.content,
      leftMs: Math.ceil(record!.untilMs - now),
    });
    const held = (): Answer => ({
      status: 'held',
      token: lock!.token,
      unknown: lock!.unknown,
      leftMs: Math.ceil(lock!.untilMs - now),
      floor: rec.floor,
    });
    const open = (untilMs: number): void =>
      this.#put(item.id, { record: { done: false, ...rec, content: '', untilMs } });

    switch (item.op) {
      case 'claim': {
        if (this.#marker === undefined) return { status: 'no-marker' };
        if (record?.done) return done();
        if (lock && !ours) return held();
        if (ours) return ok(ours.counted && counted);
        rec.attempt += 1;
        this.#put(item.id, {
          lock: { token: item.token, attempt: rec.attempt, counted, unknown: false, untilMs: now + item.lockMs },
        });
        open(now + item.recordMs);
        return ok(counted);
      }
      case 'confirm': {
        if (record?.done) return done();
        if (!ours) return { status: 'lost', floor: rec.floor };
        rec.attempt = Math.max(rec.attempt, item.attempt);
        open(now + item.recordMs);
        return ok(ours.counted && counted);
      }
      case 'extend': {
        if (!ours) return { status: 'lost', floor: rec.floor };
        this.#put(item.id, { lock: { ...ours, unknown: ours.unknown || item.unknown, untilMs: now + item.lockMs } });
        return ok(ours.counted && counted);
      }
      case 'heal': {
        if (record?.done) return done();
        if (lock && !ours) return held();
        if (ours) return ok(ours.counted && counted);
        rec.attempt = Math.max(rec.attempt, item.attempt);
        this.#put(item.id, {
          lock: { token: item.token, attempt: 0, counted: false, unknown: false, untilMs: now + item.lockMs },
        });
        open(now + item.recordMs);
        return ok(false);
      }
      case 'complete':
      case 'repair': {
        if (ours) this.#put(item.id, { lock: undefined });
        if (item.attempt <= rec.floor) return { status: 'forgotten', floor: rec.floor };
        rec.attempt = Math.max(rec.attempt, item.attempt);
        const first = record?.done ? record : { content: item.content, untilMs: now + item.recordMs };
        this.#put(item.id, { record: { done: true, ...rec, content: first.content, untilMs: first.untilMs } });
        return ok(counted);
      }
      case 'release': {
        if (!ours) return { status: 'lost', floor: rec.floor };
        this.#put(item.id, { lock: undefined });
        if (item.takeBack && ours.counted && !record?.done && ours.attempt > 0 && rec.attempt === ours.attempt) {
          rec.attempt -= 1;
          if (rec.attempt === 0 && rec.floor === 0) this.#put(item.id, { record: undefined });
          else open(record!.untilMs);
        }
        return ok(ours.counted && counted);
      }
      case 'read':
        return {
          status: 'record',
          done: record?.done ?? false,
          ...rec,
          content: record?.content ?? '',
          leftMs: record ? Math.ceil(record.untilMs - now) : -2,
        };
      case 'look':
        return {
          status: 'lock',
          token: lock?.token ?? '',
          unknown: lock?.unknown ?? false,
          leftMs: lock ? Math.ceil(lock.untilMs - now) : -2,
        };
      case 'learn': {
        rec.floor = Math.max(rec.floor, item.floor);
        const known = record?.done === true && rec.attempt > rec.floor;
        const fresh = !known && item.done && item.attempt > rec.floor;
        rec.attempt = Math.max(rec.attempt, item.attempt);
        if (known) this.#put(item.id, { record: { ...record, ...rec } });
        else if (fresh)
          this.#put(item.id, { record: { done: true, ...rec, content: item.content, untilMs: now + item.recordMs } });
        else if (rec.attempt > 0) open(Math.max(now + item.recordMs, record?.untilMs ?? 0));
        return ok(counted);
      }
      case 'peek': {
        if (record?.done) return done();
        if (lock) return held();
        return { status: 'free', counted, ...rec };
      }
    }
  }

  #order({ id, applied, pending, instead, recordMs }: Extract<Item, { op: 'order' }>): Answer {
    if (!this.#marker) return { status: 'no-marker' };
    const now = this.#now();
    const { versions: before = { applied: '', pending: '', untilMs: now } } = this.#look(id, now);
    if (applied !== '' || pending !== '' || instead !== '') {
      const keeps = instead === '' ? pending < before.pending : before.pending !== instead;
      const versions = {
        applied: applied < before.applied ? before.applied : applied,
        pending: keeps ? before.pending : pending,
        untilMs: Math.max(before.untilMs, now + recordMs),
      };
      this.#put(id, { versions });
      return this.#versionsOf({ ...before, untilMs: versions.untilMs });
    }
    return this.#versionsOf(before);
  }

  #versionsOf({ applied, pending, untilMs }: Versions): Answer {
    const leftMs = Math.ceil(untilMs - this.#now());
    return { status: 'versions', counted: !this.#held(), applied, pending, leftMs: leftMs > 0 ? leftMs : -2 };
  }

  #hello({ nonce, lifeMs, appendfsync }: Extract<Item, { op: 'hello' }>): Answer {
    const known = this.#marker;
    const longest = Math.max(lifeMs, known?.lifeMs ?? 0);
    if (known && known.runId === this.#runId) {
      known.lifeMs = longest;
      if (appendfsync !== undefined) known.always = appendfsync === 'always';
    } else {
      const why: Hold = known ? (this.#aof ? 'locks' : 'records') : this.#isEmpty() ? 'empty' : 'records';
      const before = this.#held() ? this.#hold!.why : '';
      if (why !== 'locks') this.#hold = { why, untilMs: Infinity };
      else if ((before === '' && !known!.always) || before === 'locks') this.#holdForLocks(longest);
      const always = appendfsync === 'always';
      this.#marker = { boot: nonce, runId: this.#runId, lifeMs: longest, lostWallMs: known?.lostWallMs ?? 0, always };
    }
    return this.#greeting();
  }

  #holdForLocks(lifeMs: number): void {
    this.#hold = { why: 'locks', untilMs: this.#now() + lockHoldMs(lifeMs) };
  }

  #stepped(boot: string, nonce: string): Answer {
    if (!this.#marker || boot !== this.#marker.boot) return { status: 'lost', floor: 0 };
    this.#marker.boot = nonce;
    if (!this.#held() || this.#hold!.why === 'locks') this.#holdForLocks(this.#marker.lifeMs);
    return this.#greeting();
  }

  #relearn(boot: string, nonce: string): Answer {
    const why = this.#held() ? this.#hold!.why : '';
    if (!this.#marker || boot !== this.#marker.boot || why === 'records' || why === 'empty')
      return { status: 'lost', floor: 0 };
    this.#marker.boot = nonce;
    this.#hold = { why: 'records', untilMs: Infinity };
    return this.#greeting();
  }

  #present({ service, own, ms }: Extract<Item, { op: 'present' }>): Answer {
    if (!this.#marker) return { status: 'no-marker' };
    const now = this.#now();
    const before = this.#gateways.get(service);
    if (own !== '') this.#gateways.set(service, { own, untilMs: now + ms });
    return { status: 'present', own: before && before.untilMs > now ? before.own : '' };
  }

  #greeting(): Answer {
    const { lostWallMs } = this.#marker!;
    if (!this.#held()) return { status: 'hello', hold: '', leftMs: 0, lostWallMs };
    const { why, untilMs } = this.#hold!;
    return {
      status: 'hello',
      hold: why,
      leftMs: untilMs === Infinity ? -1 : Math.ceil(untilMs - this.#now()),
      lostWallMs,
    };
  }

  #lift(boot: string, holds: readonly Hold[], lostWallMs: number): Answer {
    if (boot !== this.#boot() || !this.#held() || !holds.includes(this.#hold!.why)) return { status: 'lost', floor: 0 };
    this.#hold = undefined;
    if (lostWallMs > 0) this.#marker!.lostWallMs = lostWallMs;
    return { status: 'hello', hold: '', leftMs: 0, lostWallMs };
  }

  #right(token: string, lockMs: number): Answer {
    if (this.#marker === undefined) return { status: 'no-marker' };
    const now = this.#now();
    if (this.#sync && this.#sync.untilMs > now && this.#sync.token !== token) {
      return {
        status: 'held',
        token: this.#sync.token,
        unknown: false,
        leftMs: Math.ceil(this.#sync.untilMs - now),
        floor: 0,
      };
    }
    this.#sync = { token, untilMs: now + lockMs };
    return { status: 'ok', counted: false, attempt: 0, floor: 0 };
  }

  #isEmpty(): boolean {
    this.#sweep();
    return this.#entries.size === 0;
  }

  #look(id: string, now: number): Entry {
    const entry = this.#entries.get(id);
    if (!entry) return { lock: undefined, record: undefined };
    if (entry.lock && entry.lock.untilMs <= now) entry.lock = undefined;
    if (entry.record && entry.record.untilMs <= now) entry.record = undefined;
    if (entry.versions && entry.versions.untilMs <= now) entry.versions = undefined;
    return entry;
  }

  #put(id: string, change: Partial<Entry>): void {
    const entry: Entry = { ...this.#look(id, this.#now()), ...change };
    if (entry.lock || entry.record || entry.versions) this.#entries.set(id, entry);
    else this.#entries.delete(id);
    if (this.#entries.size >= this.#sweepAt) this.#sweep();
  }

  /** Drops what has run out, each time the map has doubled: amortised constant work per write. */
  #sweep(): void {
    const now = this.#now();
    for (const [id] of this.#entries) {
      const { lock, record, versions } = this.#look(id, now);
      if (!lock && !record && !versions) this.#entries.delete(id);
    }
    this.#sweepAt = Math.max(1024, this.#entries.size * 2);
  }
}
