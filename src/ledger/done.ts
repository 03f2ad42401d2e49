/** A done event as the column `done` holds it; operators may read it with SQL. */
import type { Done } from '../core/delivery.ts';

export function encodeDone(done: Done): string {
  const { reply } = done;
  if (typeof reply !== 'object') return JSON.stringify(done);
  return JSON.stringify({ ...done, reply: { ...reply, body: reply.body.toString('base64') } });
}

/** Reads back what `encodeDone` wrote, parsed. */
export function decodeDone(json: unknown): Done {
  const { reply, ...rest } = json as Omit<Done, 'reply'> & { readonly reply?: unknown };
  if (typeof reply !== 'object' || reply === null) return { ...rest, reply: reply === 'omitted' ? reply : undefined };
  const { contentType, body } = reply as { readonly contentType?: string; readonly body: string };
  return { ...rest, reply: { contentType, body: Buffer.from(body, 'base64') } };
}
