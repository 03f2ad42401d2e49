/** One ioredis connection to one server, with the options that known client faults ask for. */
import { createHash } from 'node:crypto';
import { Redis } from 'ioredis';
import { decode, encode } from './codec.ts';
import { errorClass } from './errors.ts';
import type { BatchAnswer, Item } from './items.ts';
import { LinkError, type Link } from './link.ts';
import { SCRIPT } from './script.ts';

const SHA = createHash('sha1').update(SCRIPT).digest('hex');

export interface RedisNode {
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** PEM bytes; undefined: no TLS. */
  readonly tls: { readonly ca: Buffer | undefined; readonly cert: Buffer | undefined; readonly key: Buffer | undefined } | undefined;
  /** First part of every key. */
  readonly prefix: string;
  /** Deadline of one command. */
  readonly timeoutMs: number;
}

/**
 * The options are not taste: with the offline queue or automatic resends a claim can run twice or hours
 * late, and without `commandTimeout` a silent server keeps a command for ever.
 */
export class RedisLink implements Link {
  readonly #redis: Redis;
  readonly #prefix: string;
  readonly #listeners: ((up: boolean) => void)[] = [];
  #up = false;

  constructor(node: RedisNode) {
    this.#prefix = node.prefix;
    this.#redis = new Redis({
      host: node.host,
      port: node.port,
      username: node.username,
      password: node.password,
      ...(node.tls === undefined ? {} : { tls: { ...node.tls, servername: node.host } }),
      replyMapping: 'legacy',
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      commandTimeout: node.timeoutMs,
      connectTimeout: 1000,
      retryStrategy: (times: number) => Math.min(2000, 50 * 2 ** Math.min(times, 6)),
      stringNumbers: false,
    });
    // Every failure also reaches the command that it concerns; without a listener ioredis would print them.
    this.#redis.on('error', () => {});
    this.#redis.on('ready', () => void this.#ready());
    this.#redis.on('close', () => this.#change(false));
  }

  async run(batch: readonly Item[], tag: string): Promise<BatchAnswer> {
    const { keyCount, args } = encode(batch, this.#prefix, tag);
    try {
      return decode(await this.#redis.evalsha(SHA, keyCount, ...args));
    } catch (error) {
      throw new LinkError(errorClass(String((error as Error).message)), error);
    }
  }

  async load(): Promise<void> {
    await this.#redis.script('LOAD', SCRIPT);
  }

  onChange(listener: (up: boolean) => void): void {
    this.#listeners.push(listener);
    listener(this.#up);
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }

  /** The script is there before the voter is asked anything. */
  async #ready(): Promise<void> {
    try {
      await this.load();
      this.#change(true);
    } catch {
      // Refused (loading, no permission) or cut: the connection is made anew, after ioredis's delay.
      this.#redis.disconnect(true);
    }
  }

  #change(up: boolean): void {
    if (this.#up === up) return;
    this.#up = up;
    for (const listener of this.#listeners) listener(up);
  }
}
