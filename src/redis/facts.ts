/** What a server says of itself outside the script. What an ACL hides, or a managed service does not have, is undefined. */

export interface Facts {
  /** `host:port`, which tells the servers of a cluster apart. */
  readonly server: string;
  readonly role: string | undefined;
  readonly evictionPolicy: string | undefined;
  readonly evictedKeys: number | undefined;
  readonly appendfsync: string | undefined;
  /** Its wall clock, epoch milliseconds. */
  readonly timeMs: number | undefined;
}

/** Reads the replies of INFO, CONFIG GET appendfsync and TIME; undefined where there was none. */
export function factsOf(server: string, info: string | undefined, config: unknown, time: unknown): Facts {
  const field = (name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info ?? '')?.[1];
  const evicted = field('evicted_keys');
  const [, appendfsync] = Array.isArray(config) ? (config as string[]) : [];
  const [seconds, micros] = Array.isArray(time) ? time.map(Number) : [];
  return {
    server,
    role: field('role'),
    evictionPolicy: field('maxmemory_policy'),
    evictedKeys: evicted === undefined ? undefined : Number(evicted),
    appendfsync,
    timeMs: seconds === undefined ? undefined : seconds * 1000 + (micros ?? 0) / 1000,
  };
}
