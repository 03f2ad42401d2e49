/** What the program runs with: checked, complete, immutable. Durations in ms, sizes in bytes. */
import type { Route } from '../core/route.ts';
import type { RedisNode } from './nodes.ts';

export interface Config {
  readonly service: string;
  readonly listen: Listen;
  readonly admin: Listen;
  readonly upstream: {
    /** `http://host:port` or `https://host:port`. */
    readonly url: string;
    readonly timeoutMs: number;
    readonly connectTimeoutMs: number;
    readonly maxInFlight: number;
    readonly maxWaiting: number;
    readonly maxWaitMs: number;
  };
  readonly limits: { readonly bodyBytes: number; readonly memoryBytes: number; readonly replyBytes: number };
  readonly redis: {
    readonly timeoutMs: number;
    readonly prefix: string;
    /** 1, 3, 5 or 7 of them; none: the embedded voter. */
    readonly nodes: readonly RedisNode[];
  };
  readonly claims: {
    readonly lockTtlMs: number;
    readonly budgetMs: number;
    readonly maxHoldMs: number;
    readonly unknownHoldMs: number;
    readonly firstStart: 'wait' | 'trust';
  };
  readonly routes: readonly Route[];
  readonly unmatched: 'reject';
  readonly drain: {
    /** How long deliveries are still taken after the signal to stop. */
    readonly delayMs: number;
    /** From the signal to the end at the latest. */
    readonly graceMs: number;
  };
  readonly log: { readonly level: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent' };
}

/** Port 0: any free one. */
export interface Listen {
  readonly host: string;
  readonly port: number;
}
