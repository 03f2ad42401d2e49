/** The queue in memory: what the ports `Queue` and `DeadLetters` promise, and no more. */
import { randomUUID } from 'node:crypto';
import type { DeadLetter, DeadLetters } from '../../src/core/dead-letters.ts';
import type { Clock } from '../../src/core/ports.ts';
import type { AttemptRecord, Enqueued, Fate, Job, Queue, Replay } from '../../src/core/queue.ts';
import type { QueuedDelivery } from '../../src/core/queued.ts';

interface Kept {
  readonly id: string;
  readonly delivery: QueuedDelivery;
  readonly history: AttemptRecord[];
  failures: number;
  replay: Replay | undefined;
  replays: number;
  diedWallMs: number;
}

/** What gateways of one service share. */
export class FakeQueueStore {
  readonly waiting: Kept[] = [];
  readonly dead = new Map<string, Kept>();
  readonly listeners = new Set<() => void>();

  put(job: Kept): void {
    this.waiting.push(job);
    for (const tell of this.listeners) tell();
  }
}

export class FakeQueue implements Queue, DeadLetters, AsyncDisposable {
  /** What the next deliveries meet instead of being queued. */
  readonly answers: Enqueued[] = [];
  readonly store: FakeQueueStore;
  readonly #clock: Clock;
  readonly #concurrency: number;
  readonly #active = new Set<Promise<void>>();
  readonly #cancels = new Set<() => void>();
  #stop = (): void => {};

  constructor(store: FakeQueueStore, clock: Clock, concurrency = 16) {
    this.store = store;
    this.#clock = clock;
    this.#concurrency = concurrency;
  }

  async enqueue(delivery: QueuedDelivery): Promise<Enqueued> {
    const answer = this.answers.shift() ?? 'queued';
    if (answer !== 'failed') {
      const job = {
        id: randomUUID(),
        delivery,
        history: [],
        failures: 0,
        replay: undefined,
        replays: 0,
        diedWallMs: 0,
      };
      this.store.put(job);
    }
    return answer;
  }

  work(handle: (job: Job) => Promise<Fate>): void {
    const take = (): void => {
      while (this.#active.size < this.#concurrency) {
        const job = this.store.waiting.shift();
        if (!job) return;
        const running = this.#try(job, handle).finally(() => {
          this.#active.delete(running);
          if (this.store.listeners.has(take)) take();
        });
        this.#active.add(running);
      }
    };
    this.store.listeners.add(take);
    this.#stop = () => void this.store.listeners.delete(take);
    take();
  }

  async stop(): Promise<void> {
    this.#stop();
    await Promise.all(this.#active);
  }

  async ids(): Promise<readonly string[]> {
    return [...this.store.dead.keys()];
  }

  async get(id: string): Promise<DeadLetter | undefined> {
    const job = this.store.dead.get(id);
    if (!job) return undefined;
    const { delivery, history, failures, diedWallMs, replays } = job;
    const lastError = history.at(-1)?.message ?? '';
    return { id, delivery, history: [...history], attempts: failures, lastError, diedWallMs, replays };
  }

  async replay(id: string, again: string): Promise<'replayed' | 'gone'> {
    const job = this.store.dead.get(id);
    if (!job) return 'gone';
    this.store.dead.delete(id);
    job.failures = 0;
    job.replay = { wallMs: this.#clock.wall(), again };
    job.replays += 1;
    this.store.put(job);
    return 'replayed';
  }

  async discard(id: string): Promise<'discarded' | 'gone'> {
    return this.store.dead.delete(id) ? 'discarded' : 'gone';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const cancel of this.#cancels) cancel();
    await this.stop();
  }

  async #try(job: Kept, handle: (job: Job) => Promise<Fate>): Promise<void> {
    const { id, delivery, failures, replay } = job;
    const fate = await handle({ id, delivery, attempt: failures + 1, replay });
    switch (fate.kind) {
      case 'done':
        return;
      case 'wait':
        return this.#later(job, fate.ms);
      case 'retry':
        job.failures += 1;
        job.history.push(fate.attempt);
        return this.#later(job, fate.ms);
      case 'dead':
        job.failures += 1;
        job.history.push(fate.attempt);
        job.diedWallMs = this.#clock.wall();
        this.store.dead.set(id, job);
    }
  }

  #later(job: Kept, ms: number): void {
    const cancel = this.#clock.timer(ms, () => {
      this.#cancels.delete(cancel);
      this.store.put(job);
    });
    this.#cancels.add(cancel);
  }
}
