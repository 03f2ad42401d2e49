/** Batches as the script takes them and answers as it gives them; the layout is described in `script.ts`. */
import type { Answer, BatchAnswer, Hold, Item } from './items.ts';

/** Key names of one voter under `prefix`; `tag` is the first hex digit of the digest (a Redis Cluster slots by it). */
export const keys = {
  marker: (prefix: string, tag: string): string => `${prefix}:{${tag}}:boot`,
  hold: (prefix: string, tag: string): string => `${prefix}:{${tag}}:hold`,
  sync: (prefix: string, tag: string): string => `${prefix}:{${tag}}:sync`,
  /** Which voters the gateways of a service know that were here. */
  gateways: (prefix: string, tag: string, service: string): string => `${prefix}:{${tag}}:gateways:${service}`,
  /** There while gateways find the voter on hold: read by the readiness probe of the server's pod. */
  unready: (prefix: string, tag: string): string => `${prefix}:{${tag}}:unready`,
  lock: (prefix: string, id: string): string => `${prefix}:{${tagOf(id)}}${id}:l`,
  record: (prefix: string, id: string): string => `${prefix}:{${tagOf(id)}}${id}:r`,
};

/** The event whose record a key is, undefined for any other key. */
export function recordId(prefix: string, key: string): string | undefined {
  const id = key.slice(prefix.length + 4, -2);
  return id.length > 0 && key === keys.record(prefix, id) ? id : undefined;
}

/** First hex digit of the digest that `id` spells in base64url. */
export function tagOf(id: string): string {
  return (Buffer.from(id.slice(0, 2), 'base64url')[0]! >> 4).toString(16);
}

/** KEYS and ARGV of a batch, in one list as EVALSHA takes them, and the number of KEYS. */
export function encode(
  batch: readonly Item[],
  prefix: string,
  tag: string,
): { keyCount: number; args: (string | number)[] } {
  const marker = keys.marker(prefix, tag);
  const hold = keys.hold(prefix, tag);
  const sync = keys.sync(prefix, tag);
  const names: string[] = [marker, hold];
  const fields: (string | number)[] = [];
  for (const item of batch) {
    if (isOfMarker(item)) names.push(marker, hold);
    else if (item.op === 'present') names.push(keys.gateways(prefix, tag, item.service), keys.unready(prefix, tag));
    else if (item.op === 'sync') names.push(sync, sync);
    else names.push(keys.lock(prefix, item.id), keys.record(prefix, item.id));
    fields.push(...fieldsOf(item));
  }
  return { keyCount: names.length, args: [...names, ...fields] };
}

/** Items about the voter itself. Asked for every item of every batch. */
const OF_MARKER: ReadonlySet<Item['op']> = new Set(['hello', 'trust', 'admit', 'stepped', 'relearn']);

function isOfMarker(item: Item): item is Extract<Item, { op: 'hello' | 'trust' | 'admit' | 'stepped' | 'relearn' }> {
  return OF_MARKER.has(item.op);
}

function fieldsOf(item: Item): (string | number)[] {
  switch (item.op) {
    case 'claim':
      return [item.op, item.token, item.lockMs, item.recordMs, 0, 0, ''];
    case 'confirm':
      return [item.op, item.token, 0, item.recordMs, item.attempt, 0, ''];
    case 'extend':
      return [item.op, item.token, item.lockMs, 0, 0, item.unknown ? 1 : 0, ''];
    case 'heal':
      return [item.op, item.token, item.lockMs, item.recordMs, item.attempt, 0, ''];
    case 'complete':
    case 'repair':
      return [item.op, item.token, 0, item.recordMs, item.attempt, 0, item.content];
    case 'release':
      return [item.op, item.token, 0, 0, 0, item.takeBack ? 1 : 0, ''];
    case 'peek':
      return [item.op, '', 0, 0, 0, 0, ''];
    case 'hello':
      return [
        item.op,
        item.nonce,
        item.lifeMs,
        item.appendfsync === undefined ? 0 : item.appendfsync === 'always' ? 1 : 2,
        0,
        0,
        item.name,
      ];
    case 'present':
      return [item.op, item.own, item.ms, 0, 0, 0, ''];
    case 'stepped':
    case 'relearn':
      return [item.op, item.boot, 0, 0, 0, 0, item.nonce];
    case 'read':
    case 'look':
      return [item.op, '', 0, 0, 0, 0, ''];
    case 'learn':
      return [item.op, '', item.floor, item.recordMs, item.attempt, item.done ? 1 : 0, item.content];
    case 'order':
      return [item.op, item.instead, 0, item.recordMs, 0, 0, `${item.applied},${item.pending}`];
    case 'sync':
      return [item.op, item.token, item.lockMs, 0, 0, 0, ''];
    case 'admit':
      return [item.op, item.boot, 0, 0, 0, 0, String(item.lostWallMs)];
    case 'trust':
      return [item.op, item.boot, 0, 0, 0, 0, ''];
  }
}

/** The script's reply, read back. Throws on a shape that the script cannot have sent. */
export function decode(reply: unknown): BatchAnswer {
  if (!Array.isArray(reply)) throw new Error('voter sent something that is not a batch answer');
  const [boot, held, ...answers] = reply as [string, number, ...unknown[][]];
  return { boot, held: held === 1, answers: answers.map(answerOf) };
}

function answerOf(raw: unknown[]): Answer {
  const [status, a, b, c, d, e] = raw as [string, never, never, never, never, never];
  switch (status) {
    case 'ok':
    case 'free':
      return { status, counted: a === 1, attempt: b, floor: c };
    case 'done':
      return { status, attempt: a, floor: b, content: c, leftMs: d };
    case 'held':
      return { status, token: a, unknown: b === 1, leftMs: c, floor: d };
    case 'lost':
    case 'forgotten':
      return { status, floor: a };
    case 'no-marker':
      return { status };
    case 'present':
      return { status, own: a };
    case 'hello':
      return { status, hold: a as Hold, leftMs: b, lostWallMs: Number(c) };
    case 'versions':
      return { status, counted: a === 1, applied: b, pending: c, leftMs: d };
    case 'lock':
      return { status, token: a, unknown: b === 1, leftMs: c };
    case 'record':
      return { status, done: a === 1, attempt: b, floor: c, content: d, leftMs: e };
    case 'error':
      return { status, message: a };
    default:
      throw new Error(`voter sent an unknown answer: ${String(status)}`);
  }
}
