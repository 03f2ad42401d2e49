/** What differs between a queue on Redis and one on PostgreSQL. */
import type { Queue, Worker, WorkerOptions, Processor } from 'bullmq';
import type { JobData } from './job-data.ts';

export type BullQueue = Queue<JobData, void>;
export type BullWorker = Worker<JobData, void>;
export type WorkOptions = Omit<WorkerOptions, 'connection' | 'prefix' | 'skipVersionCheck'>;

/** A connected queue. */
export interface Backend {
  readonly queue: BullQueue;
  /** On connections of its own. `failed` hears what goes wrong beside the jobs. */
  worker(process: Processor<JobData, void>, options: WorkOptions, failed: (error: Error) => void): BullWorker;
  /** Whether there is a connection, as far as it is known without asking. */
  ready(): boolean;
  /** Whether an error of `add` proves that nothing was added. */
  provesNothingAdded(error: unknown): boolean;
  /** `add` was not answered in time: what may hang on the connection is given up. */
  silent(): void;
  /** Why what was acknowledged may be lost with the server's power; undefined: it is not. */
  doubts(): Promise<string | undefined>;
  close(): Promise<void>;
}

/** The doubt where a server does not say. */
export const UNKNOWN = 'it may not be asked whether it keeps what it acknowledged';
