/** The content of a done record: `<status>,<finished, epoch ms>,<trace id>,<reply>`; opaque to the script. */
import type { Done, StoredReply } from '../core/delivery.ts';

export function encodeDone(done: Done): string {
  return `${done.status},${done.wallMs},${done.traceId},${encodeReply(done.reply)}`;
}

/** Reads back what `encodeDone` wrote; a content of another hand reads as a plain 200. */
export function decodeDone(content: string): Done {
  const [status = '', wallMs = '', traceId = '', reply = ''] = content.split(',');
  return { status: Number(status) || 200, wallMs: Number(wallMs) || 0, traceId, reply: decodeReply(reply) };
}

function encodeReply(reply: Done['reply']): string {
  if (reply === undefined) return '';
  if (reply === 'omitted') return '-';
  return `${Buffer.from(reply.contentType ?? '').toString('base64')}.${reply.body.toString('base64')}`;
}

function decodeReply(text: string): StoredReply | 'omitted' | undefined {
  if (text === '') return undefined;
  if (text === '-') return 'omitted';
  const [type = '', body = ''] = text.split('.');
  return { contentType: type === '' ? undefined : Buffer.from(type, 'base64').toString(), body: Buffer.from(body, 'base64') };
}
