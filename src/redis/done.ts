/**
 * The content of a done record: `<status>,<finished>,<trace id>,<reply>[,<fingerprint>]`; opaque to the script. Time in base 36
 * and the trace id in base64url keep a record within the 44 bytes that Redis stores without a second allocation. The id of
 * the span follows that of its trace without a mark between them; both have a fixed length.
 */
import type { Done, StoredReply } from '../core/delivery.ts';

export function encodeDone(done: Done): string {
  const content = `${done.status},${done.wallMs.toString(36)},${encodeTrace(done)},${encodeReply(done.reply)}`;
  return done.fingerprint === undefined ? content : `${content},${done.fingerprint}`;
}

/** Reads back what `encodeDone` wrote; a content of another hand reads as a plain 200. */
export function decodeDone(content: string): Done {
  const [status = '', wallMs = '', trace = '', reply = '', fingerprint] = content.split(',');
  return {
    status: Number(status) || 200,
    wallMs: Number.parseInt(wallMs, 36) || 0,
    ...decodeTrace(trace),
    reply: decodeReply(reply),
    ...(fingerprint !== undefined && { fingerprint }),
  };
}

/** Only ids as W3C Trace Context writes them (32 and 16 hex digits) are kept. */
function encodeTrace({ traceId, spanId = '' }: Done): string {
  if (!/^[0-9a-f]{32}$/.test(traceId)) return '';
  return Buffer.from(/^[0-9a-f]{16}$/.test(spanId) ? traceId + spanId : traceId, 'hex').toString('base64url');
}

function decodeTrace(text: string): Pick<Done, 'traceId' | 'spanId'> {
  const ids = Buffer.from(text, 'base64url').toString('hex');
  return ids.length > 32 ? { traceId: ids.slice(0, 32), spanId: ids.slice(32) } : { traceId: ids };
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
