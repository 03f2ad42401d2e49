/** Where a Redis Cluster keeps what: 16,384 slots, each owned by one master (the Redis Cluster specification). */

export interface ClusterAddress {
  readonly host: string;
  readonly port: number;
}

/** The sixteen hash tags of our keys, which are the lanes of a cluster. */
export const TAGS: readonly string[] = Array.from('0123456789abcdef');

/** The slot of every key with this hash tag: CRC-16/XMODEM of what stands between the braces. */
export function slotOf(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc % 16_384;
}

/**
 * The master of each tag's slot, from a reply of CLUSTER SLOTS that `asked` gave; undefined while a slot of ours has
 * none. A node that does not know its own name leaves it out: it is where it was asked.
 */
export function mastersOf(reply: unknown, asked: ClusterAddress): ReadonlyMap<string, ClusterAddress> | undefined {
  const ranges = Array.isArray(reply) ? (reply as [number, number, [string | null, number]?][]) : [];
  const masters = TAGS.map((tag) => {
    const slot = slotOf(tag);
    const [, , master] = ranges.find(([from, to]) => from <= slot && slot <= to) ?? [];
    if (master === undefined) return undefined;
    const [host, port] = master;
    return [tag, { host: host === null || host === '' || host === '?' ? asked.host : host, port }] as const;
  });
  return masters.every((each) => each !== undefined) ? new Map(masters) : undefined;
}
