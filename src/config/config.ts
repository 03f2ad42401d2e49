/** What the program runs with: checked, complete, immutable. Durations in ms, sizes in bytes. */
import type { Route } from '../core/route.ts';
import type { LedgerConfig } from './ledger.ts';
import type { RedisNode } from './nodes.ts';
import type { QueueConfig } from './queue.ts';

export interface Config {
  readonly service: string;
  readonly listen: Listen;
  /** `token`: for what may only be asked with it; undefined: nobody may. */
  readonly admin: Listen & { readonly token: string | undefined };
  readonly upstream: {
    /** `http://host:port`, `https://host:port` or `unix:/path`. */
    readonly url: string;
    readonly host: 'preserve' | 'upstream';
    readonly timeoutMs: number;
    readonly connectTimeoutMs: number;
    /** undefined: none but the whole. */
    readonly headersTimeoutMs: number | undefined;
    readonly keepAliveMs: number;
    readonly maxInFlight: number;
    readonly maxWaiting: number;
    readonly maxWaitMs: number;
    readonly maxProxied: number;
  };
  readonly limits: {
    readonly bodyBytes: number;
    readonly memoryBytes: number;
    readonly replyBytes: number;
    readonly headersBytes: number;
    readonly inFlight: number;
  };
  readonly redis: {
    readonly timeoutMs: number;
    readonly prefix: string;
    /** 1, 3, 5 or 7 of them; none: the embedded voter. */
    readonly nodes: readonly RedisNode[];
    /** The voters until now, while they change; a node that stays is in both. Empty: no change is under way. */
    readonly previous: readonly RedisNode[];
  };
  readonly claims: {
    readonly lockTtlMs: number;
    readonly budgetMs: number;
    readonly maxHoldMs: number;
    readonly unknownHoldMs: number;
    readonly retentionMs: number;
    readonly recoverAfterMs: number;
    readonly onMemoryLoss: 'recover' | 'refuse';
    /** Records per second. */
    readonly resyncRate: number;
    readonly firstStart: 'wait' | 'trust';
  };
  readonly routes: readonly Route[];
  readonly unmatched: 'proxy' | 'reject';
  /** Addresses and networks in CIDR form. */
  readonly trustedProxies: readonly string[];
  /** Undefined: no route is in async mode. */
  readonly queue?: QueueConfig | undefined;
  /** Undefined: the voters alone decide. */
  readonly ledger?: LedgerConfig | undefined;
  readonly readiness: { readonly requireQuorum: boolean };
  readonly drain: {
    /** How long deliveries are still taken after the signal to stop. */
    readonly delayMs: number;
    /** From the signal to the end at the latest. */
    readonly graceMs: number;
  };
  readonly tracing: {
    /** `http://host:port` or `https://host:port`; undefined: no traces. */
    readonly otlp: string | undefined;
    /** 0 to 1. */
    readonly sample: number;
  };
  readonly metrics: { readonly openMetrics: boolean };
  readonly log: { readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent' };
}

/** Port 0: any free one. */
export interface Listen {
  readonly host: string;
  readonly port: number;
}
