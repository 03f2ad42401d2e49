/**
 * The queue of async mode, on BullMQ.
 *
 *     connecting ──greeted──▶ open: deliveries are put in, jobs are taken, the depth is told every two seconds
 *         ▲ │ not greeted, in steps of up to two seconds
 *         └─┘
 *
 * Once open it stays open: both drivers find a server again that was away. While it is not, putting in fails at
 * once, or at its deadline. BullMQ's part is to keep jobs and to hand each to one worker at a time; how often the
 * application sees an event, and how failures are dealt with, is decided in the core.
 */
import { randomBytes } from 'node:crypto';
import type { Clock, Events } from '../core/ports.ts';
import type { Enqueued, Fate, Job, Queue } from '../core/queue.ts';
import type { QueuedDelivery } from '../core/queued.ts';
import type { Backend, BullWorker } from './backend.ts';
import { BullDeadLetters } from './bull-dead-letters.ts';
import { jobId, toData } from './job-data.ts';
import { tell } from './depth.ts';
import { backoffOf, processor } from './processor.ts';
import { connectRedis } from './redis-backend.ts';
import type { QueueOptions } from './target.ts';
import { Turnstile } from './turnstile.ts';

type QueueEvents = Pick<Events, 'queueUp' | 'queueDurable' | 'queueDepth' | 'jobStalled' | 'warn'>;

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2000;
/** A connection that does not come about in this time is given up, and another begun. */
const CONNECT_MS = 10_000;
/** Closing waits no longer than this for a server that does not answer. */
const CLOSE_MS = 2000;
/** How often a job fails is up to us: BullMQ must never bury one for a reason of its own. */
const NO_LIMIT = 1_000_000_000;
/** Lines of history that are kept of a job. */
const HISTORY = 200;

/** Of a body, while it is put in. */
const COPIES = 4;
/** Bytes of copies that may be there at the same time; bodies of the usual size never come near. */
const MOST_WRITTEN = 16 * 1024 ** 2;

export class JobQueue implements Queue, AsyncDisposable {
  readonly deadLetters: BullDeadLetters;
  readonly #options: QueueOptions;
  readonly #clock: Clock;
  readonly #events: QueueEvents;
  readonly #stopping = new AbortController();
  readonly #opened: Promise<void>;
  #backend: Backend | undefined;
  #worker: BullWorker | undefined;
  #handle: ((job: Job) => Promise<Fate>) | undefined;
  readonly #writing: Turnstile;
  readonly #running = new Set<Promise<Fate>>();
  #stopped = false;
  /** What was complained about since the queue was last well. */
  readonly #said = new Set<string>();

  constructor(options: QueueOptions, clock: Clock, events: QueueEvents) {
    this.#options = options;
    this.#clock = clock;
    this.#events = events;
    this.#writing = new Turnstile(MOST_WRITTEN, clock);
    this.deadLetters = new BullDeadLetters(() => this.#backend?.queue, clock);
    this.#opened = this.#run();
  }

  /** The queue itself, for its page; undefined until it is open. */
  get bull(): Backend['queue'] | undefined {
    return this.#backend?.queue;
  }

  async enqueue(delivery: QueuedDelivery): Promise<Enqueued> {
    const backend = this.#backend;
    if (backend?.ready() !== true) return 'failed';
    const { timeoutMs } = this.#options;
    const untilMs = this.#clock.now() + timeoutMs;
    const bytes = COPIES * delivery.body.length;
    if (!(await this.#writing.enter(bytes, timeoutMs))) return 'failed';
    const late = Promise.withResolvers<Enqueued>();
    const cancel = this.#clock.timer(Math.max(0, untilMs - this.#clock.now()), () => late.resolve('unknown'));
    // What waited for its turn has less time than that: the server is not silent yet, and others hang on the connection.
    const cancelSilent = this.#clock.timer(timeoutMs, () => backend.silent());
    const adding = this.#add(backend, delivery).finally(() => {
      cancelSilent();
      this.#writing.leave(bytes);
    });
    const enqueued = await Promise.race([adding, late.promise]);
    cancel();
    return enqueued;
  }

  work(handle: (job: Job) => Promise<Fate>): void {
    this.#handle = async (job) => {
      const running = handle(job);
      this.#running.add(running);
      return await running.finally(() => this.#running.delete(running));
    };
    this.#startWorker();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    const worker = this.#worker;
    if (!worker) return;
    const closing = worker.close();
    // Where the server is away BullMQ waits for it; the jobs in our hands are what counts.
    await Promise.race([closing, Promise.all(this.#running).then(async () => await this.#within(() => closing))]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopped = true;
    this.#stopping.abort();
    await this.#opened;
    await this.#within(async () => await this.#worker?.close(true));
    await this.#within(async () => await this.#backend?.close());
  }

  async #add(backend: Backend, delivery: QueuedDelivery): Promise<Enqueued> {
    try {
      await backend.queue.add(delivery.route, toData(delivery), {
        jobId: jobId(delivery.acceptedWallMs, randomBytes(12)),
        ...{ attempts: NO_LIMIT, backoff: { type: 'ours' } },
        ...{ removeOnComplete: true, removeOnFail: false, keepLogs: HISTORY, stackTraceLimit: 0 },
      });
      return 'queued';
    } catch (error) {
      this.#complain('a delivery could not be put in the queue', error);
      return backend.provesNothingAdded(error) ? 'failed' : 'unknown';
    }
  }

  /** Connects, then tells how the queue stands until it is disposed of. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (let pauseMs = FIRST_PAUSE_MS; !signal.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
      this.#backend = await this.#connect();
      if (this.#backend) break;
      await this.#clock.sleep(pauseMs, signal);
    }
    if (!this.#backend || signal.aborted) return;
    this.#startWorker();
    const { queue } = this.#backend;
    const up = (is: boolean, error?: unknown): void => {
      this.#events.queueUp(is, {
        queue: this.#options.target.name,
        ...(error instanceof Error && { error: error.message }),
      });
      if (is) this.#said.clear();
    };
    const { deadRetentionMs } = this.#options;
    const backend = this.#backend;
    const doubts = async (): Promise<string | undefined> => await backend.doubts();
    const tend = (): void => this.#tend();
    await tell({ queue, doubts, tend, deadRetentionMs, up, clock: this.#clock, events: this.#events, signal });
  }

  async #connect(): Promise<Backend | undefined> {
    const { target } = this.#options;
    const giveUp = new AbortController();
    const abort = (): void => giveUp.abort();
    this.#stopping.signal.addEventListener('abort', abort);
    const cancel = this.#clock.timer(CONNECT_MS, abort);
    try {
      return target.kind === 'redis'
        ? await connectRedis(this.#options, giveUp.signal)
        : await (await import('./postgres-backend.ts')).connectPostgres(this.#options);
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#complain('the queue cannot be opened', error);
      return undefined;
    } finally {
      cancel();
      this.#stopping.signal.removeEventListener('abort', abort);
    }
  }

  /** Once there is both a queue and somebody to work. */
  #startWorker(): void {
    if (!this.#backend || !this.#handle || this.#worker || this.#stopped) return;
    const { concurrency, lockMs } = this.#options;
    this.#worker = this.#backend.worker(
      processor(this.#handle, this.#clock),
      {
        ...{ concurrency, lockDuration: lockMs, stalledInterval: Math.max(1000, lockMs / 2) },
        // A job is never buried because its workers died.
        ...{ maxStalledCount: NO_LIMIT, runRetryDelay: 1000 },
        settings: { backoffStrategy: backoffOf(this.#clock) },
      },
      (error) => this.#complain('the queue has trouble', error),
    );
    this.#worker.on('stalled', (job) => this.#events.jobStalled(job));
  }

  /** A worker that has ended by itself is started again: without one nothing would be done, and nobody told. */
  #tend(): void {
    if (!this.#worker || this.#stopped || this.#worker.isRunning()) return;
    this.#complain('the worker had ended', 'it is started again');
    this.#worker.run().catch((error: unknown) => this.#complain('the worker cannot be started', error));
  }

  /** Once, until the queue is well again. Messages only: errors of drivers may hold what was sent. */
  #complain(what: string, error: unknown): void {
    const reason = error instanceof Error ? error.message || error.name : String(error);
    const line = `${what}: ${reason}`;
    if (this.#said.has(line) || this.#said.size > 20) return;
    this.#said.add(line);
    this.#events.warn(what, { queue: this.#options.target.name, reason });
  }

  async #within(closing: () => Promise<void>): Promise<void> {
    const late = Promise.withResolvers<void>();
    const cancel = this.#clock.timer(CLOSE_MS, () => late.resolve());
    await Promise.race([closing().catch(() => undefined), late.promise]);
    cancel();
  }
}
