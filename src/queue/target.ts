/** Where the queue is, and how it is used; from configuration. Durations in milliseconds. */

export interface QueueTarget {
  readonly kind: 'redis' | 'postgres';
  /** `host:port`, for the log. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Number of the Redis database, or name of the PostgreSQL one. */
  readonly database: string;
  /** PEM bytes; undefined: no TLS. */
  readonly tls:
    | { readonly ca: Buffer | undefined; readonly cert: Buffer | undefined; readonly key: Buffer | undefined }
    | undefined;
}

export interface QueueOptions {
  readonly target: QueueTarget;
  /** Gateways with this name share the queue. */
  readonly service: string;
  /** Deadline of putting one delivery in. */
  readonly timeoutMs: number;
  /** Jobs that this process works on at the same time. */
  readonly concurrency: number;
  /** A job whose worker has been silent for this long is taken by another. */
  readonly lockMs: number;
  /** Dead letters are kept for this long. */
  readonly deadRetentionMs: number;
}

/** Keys of Redis begin with it; apart from those of the voters (`ho`), should both be on one server. */
export const PREFIX = 'hoq';
/** PostgreSQL schema, the queue's own. */
export const SCHEMA = 'hookonce_queue';
