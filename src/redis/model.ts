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
  #marker: { boot: string; runId: string; lifeMs: number } | undefined;
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
  }

  #boot(): string {
    return this.#marker?.boot ?? '';
  }

  #held(): boolean {
    if (this.#hold && this.#hold.untilMs <= this.#now()) this.#hold = undefined;
    return this.#hold !== undefined;
  }

  #answer(item: Item): Answer {
    if (item.op === 'hello') return this.#hello(item.nonce, item.lifeMs);
    if (item.op === 'trust') return this.#trust(item.boot);
    const now = this.#now();
    const { lock, record } = this.#look(item.id, now);
    const rec = { attempt: record?.attempt ?? 0, floor: record?.floor ?? 0 };
    const counted = !this.#held();
    const ours = lock && item.op !== 'peek' && lock.token === item.token ? lock : undefined;
    const ok = (isCounted: boolean): Answer => ({ status: 'ok', counted: isCounted, ...rec });
    const done = (): Answer => ({ status: 'done', ...rec, content: record!.content, leftMs: Math.ceil(record!.untilMs - now) });
    const held = (): Answer => ({
      status: 'held',
      token: lock!.token,
      unknown: lock!.unknown,
      leftMs: Math.ceil(lock!.untilMs - now),
      floor: rec.floor,
    });
    const open = (untilMs: number): void => this.#put(item.id, { record: { done: false, ...rec, content: '', untilMs } });

    switch (item.op) {
      case 'claim': {
        if (this.#marker === undefined) return { status: 'no-marker' };
        if (record?.done) return done();
        if (lock && !ours) return held();
        if (ours) return ok(ours.counted && counted);
        rec.attempt += 1;
        this.#put(item.id, { lock: { token: item.token, attempt: rec.attempt, counted, unknown: false, untilMs: now + item.lockMs } });
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
        this.#put(item.id, { lock: { token: item.token, attempt: 0, counted: false, unknown: false, untilMs: now + item.lockMs } });
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
      case 'peek': {
        if (record?.done) return done();
        if (lock) return held();
        return { status: 'free', counted, ...rec };
      }
    }
  }

  #hello(nonce: string, lifeMs: number): Answer {
    const known = this.#marker;
    const longest = Math.max(lifeMs, known?.lifeMs ?? 0);
    if (known && known.runId === this.#runId) {
      known.lifeMs = longest;
    } else {
      const why: Hold = known ? (this.#aof ? 'locks' : 'records') : this.#entries.size === 0 ? 'empty' : 'records';
      const keeps = why === 'locks' && this.#held() && this.#hold!.why !== 'locks';
      if (!keeps) this.#hold = { why, untilMs: this.#now() + lockHoldMs(longest) };
      this.#marker = { boot: nonce, runId: this.#runId, lifeMs: longest };
    }
    if (!this.#held()) return { status: 'hello', hold: '', leftMs: 0 };
    return { status: 'hello', hold: this.#hold!.why, leftMs: Math.ceil(this.#hold!.untilMs - this.#now()) };
  }

  #trust(boot: string): Answer {
    if (boot !== this.#boot() || !this.#held() || this.#hold!.why !== 'empty') return { status: 'lost', floor: 0 };
    this.#hold = undefined;
    return { status: 'hello', hold: '', leftMs: 0 };
  }

  #look(id: string, now: number): Entry {
    const entry = this.#entries.get(id);
    if (!entry) return { lock: undefined, record: undefined };
    if (entry.lock && entry.lock.untilMs <= now) entry.lock = undefined;
    if (entry.record && entry.record.untilMs <= now) entry.record = undefined;
    return entry;
  }

  #put(id: string, change: Partial<Entry>): void {
    const entry: Entry = { ...this.#look(id, this.#now()), ...change };
    if (entry.lock || entry.record) this.#entries.set(id, entry);
    else this.#entries.delete(id);
    if (this.#entries.size >= this.#sweepAt) this.#sweep();
  }

  /** Drops what has run out, each time the map has doubled: amortised constant work per write. */
  #sweep(): void {
    const now = this.#now();
    for (const [id] of this.#entries) {
      const { lock, record } = this.#look(id, now);
      if (!lock && !record) this.#entries.delete(id);
    }
    this.#sweepAt = Math.max(1024, this.#entries.size * 2);
  }
}
