/** One ioredis connection to one server, with the options that known client faults ask for. */
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { Redis } from 'ioredis';
import { decode, encode, recordId } from './codec.ts';
import { errorClass } from './errors.ts';
import { factsOf, type Facts } from './facts.ts';
import type { BatchAnswer, Item } from './items.ts';
import { LinkError, type Link, type Page } from './link.ts';
import { SCRIPT } from './script.ts';

/** Keys looked at in one step of a scan: about a tenth of a millisecond of the server's time. */
const SCAN_COUNT = 250;
const SHA = createHash('sha1').update(SCRIPT).digest('hex');

export interface RedisNode {
  readonly host: string;
  readonly port: number;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** PEM bytes; undefined: no TLS. */
  readonly tls:
    | { readonly ca: Buffer | undefined; readonly cert: Buffer | undefined; readonly key: Buffer | undefined }
    | undefined;
  /** First part of every key. */
  readonly prefix: string;
  /** Deadline of one command. */
  readonly timeoutMs: number;
}

/**
 * The options are not taste: with the offline queue or automatic resends a claim can run twice or hours
 * late, and without `commandTimeout` a silent server keeps a handshake for ever. Once the link is up the
 * voter keeps the deadlines: ioredis's timer also fires on answers that have arrived and wait to be read.
 */
export class RedisLink implements Link {
  readonly #redis: Redis;
  readonly #server: string;
  readonly #prefix: string;
  readonly #timeoutMs: number;
  readonly #listeners: { changed: (up: boolean) => void; failed: ((errorClass: string) => void) | undefined }[] = [];
  #up = false;

  constructor(node: RedisNode) {
    this.#server = `${node.host}:${node.port}`;
    this.#prefix = node.prefix;
    this.#timeoutMs = node.timeoutMs;
    this.#redis = new Redis({
      host: node.host,
      port: node.port,
      username: node.username,
      password: node.password,
      ...(node.tls === undefined ? {} : { tls: { ...node.tls, ...serverName(node.host) } }),
      replyMapping: 'legacy',
      // A server that is loading says so to the voter's greeting; ioredis would ask INFO, and tell the console where it may not.
      enableReadyCheck: false,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      commandTimeout: node.timeoutMs,
      connectTimeout: 1000,
      retryStrategy: (times: number) => Math.min(2000, 50 * 2 ** Math.min(times, 6)),
      stringNumbers: false,
    });
    this.#redis.on('error', (error: NodeJS.ErrnoException) => {
      for (const { failed } of this.#listeners) failed?.(errorClass(error.message || (error.code ?? '')));
    });
    this.#redis.on('ready', () => void this.#ready());
    this.#redis.on('close', () => {
      this.#redis.options.commandTimeout = this.#timeoutMs;
      this.#change(false);
    });
  }

  async run(batch: readonly Item[], tag: string): Promise<BatchAnswer> {
    const { keyCount, args } = encode(batch, this.#prefix, tag);
    try {
      return decode(await this.#redis.evalsha(SHA, keyCount, ...args));
    } catch (error) {
      throw new LinkError(errorClass(String((error as Error).message)), error);
    }
  }

  async scan(cursor: string): Promise<Page> {
    try {
      const [next, found] = await this.#redis.scan(cursor, 'MATCH', `${this.#prefix}:*:r`, 'COUNT', SCAN_COUNT);
      return { cursor: next, ids: found.flatMap((key) => recordId(this.#prefix, key) ?? []) };
    } catch (error) {
      throw new LinkError(errorClass(String((error as Error).message)), error);
    }
  }

  async facts(): Promise<readonly [Facts]> {
    const [info, config, time] = await Promise.all([
      unlessForbidden(this.#redis.info()),
      unlessForbidden(this.#redis.config('GET', 'appendfsync')),
      unlessForbidden(this.#redis.time()),
    ]);
    return [factsOf(this.#server, info, config, time)];
  }

  /** The reply of CLUSTER SLOTS. Rejects where there is no cluster. */
  async slots(): Promise<unknown> {
    return await this.#redis.call('CLUSTER', 'SLOTS');
  }

  async load(): Promise<void> {
    await this.#redis.script('LOAD', SCRIPT);
  }

  onChange(changed: (up: boolean) => void, failed?: (errorClass: string) => void): void {
    this.#listeners.push({ changed, failed });
    changed(this.#up);
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }

  /** Where loading is refused, the first batch finds no script and says so: a new connection would not help. */
  async #ready(): Promise<void> {
    await this.load().catch(() => {});
    if (this.#redis.status !== 'ready') return;
    delete this.#redis.options.commandTimeout;
    this.#change(true);
  }

  #change(up: boolean): void {
    if (this.#up === up) return;
    this.#up = up;
    for (const { changed } of this.#listeners) changed(up);
  }
}

/** Undefined where an ACL forbids it, or the server has no such command. */
async function unlessForbidden<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    const why = errorClass(String((error as Error).message));
    if (why === 'auth' || why === 'other') return undefined;
    throw new LinkError(why, error);
  }
}

/** The name that the handshake asks for. An address is none, and Node refuses it; the certificate is checked against it all the same. */
function serverName(host: string): { servername?: string } {
  return isIP(host) === 0 ? { servername: host } : {};
}
