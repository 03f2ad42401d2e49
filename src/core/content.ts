/** Bodies with a content coding (RFC 9110 8.4): decoded where the signature or the name of the event needs it, forwarded as they came. */
import type { Outcome, Received } from './delivery.ts';

/** The delivery as its sender wrote it before coding it; `wire` is what is forwarded. An outcome means that it cannot be read. */
export async function decoded<D extends Received>(delivery: D): Promise<D | Outcome> {
  if (delivery.decode === undefined) return delivery;
  const content = await delivery.decode();
  return Buffer.isBuffer(content) ? { ...delivery, body: content, wire: delivery.body, decode: undefined } : content;
}
