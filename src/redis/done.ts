/**
 * The content of a done record: `<status>,<finished>,<trace id>,<reply>[,<fingerprint>]`; opaque to the script. Time in base 36
 * and the trace id in base64url keep a record within the 44 bytes that Redis stores without a second allocation.
 */
import type { Done, StoredReply } from '../core/delivery.ts';

export function encodeDone(done: Done): string {
  const content = `${done.status},${done.wallMs.toString(36)},${encodeTrace(done.traceId)},${encodeReply(done.reply)}`;
  return done.fingerprint === undefined ? content : `${content},${done.fingerprint}`;
}

/** Reads back what `encodeDone` wrote; a content of another hand reads as a plain 200. */
export function decodeDone(content: string): Done {
  const [status = '', wallMs = '', trace = '', reply = '', fingerprint] = content.split(',');
  return {
    status: Number(status) || 200,
    wallMs: Number.parseInt(wallMs, 36) || 0,
    traceId: Buffer.from(trace, 'base64url').toString('hex'),
    reply: decodeReply(reply),
    ...(fingerprint !== undefined && { fingerprint }),
  };
}

/** Only a trace id as W3C Trace Context writes it (32 hex digits) is kept. */
function encodeTrace(traceId: string): string {
  return /^[0-9a-f]{32}$/.test(traceId) ? Buffer.from(traceId, 'hex').toString('base64url') : '';
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
  return {
    contentType: type === '' ? undefined : Buffer.from(type, 'base64').toString(),
    body: Buffer.from(body, 'base64'),
  };
}
