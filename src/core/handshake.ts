/**
 * How senders make sure of an endpoint before they send events there: a challenge that is echoed, a hash that
 * only the holder of the secret can make. Answered by the gateway; not events, and never claimed.
 */
import type { HandshakeAnswer, Key, Received } from './delivery.ts';

export interface Handshake {
  /** `signed`: only a delivery whose signature held is asked. `open`: no signature covers it, so it is asked before any. */
  readonly when: 'signed' | 'open';
  /** Methods that only the handshake uses. */
  readonly methods: readonly ('GET' | 'HEAD')[];
  /** What is asked and answered, in words, for the sender's page. */
  readonly title: string;
  /** What `handshake.token` of a route is for this sender; undefined: it has none. */
  readonly token?: string | undefined;
  /** Undefined: not a handshake. What it echoes is anybody's text, so it must not be taken for a page: `plain`. */
  answer(received: Received, held: HandshakeSecrets): Greeting | undefined;
}

export interface HandshakeSecrets {
  /** Those of the route; of a signed handshake only the one that signed it. */
  readonly secrets: readonly Key[];
  /** A secret for the handshake alone, where the sender has one. */
  readonly token: Buffer | undefined;
}

export interface Greeting {
  readonly answer: HandshakeAnswer;
  /** Read once, before the answer: without its success the sender is told to come again. One of the sender's own addresses. */
  readonly visit?: string | undefined;
  /** What an operator has to do about it. */
  readonly tell?: string | undefined;
  /** Goes with `tell`, where the route allows it to be shown. */
  readonly reveal?: string | undefined;
}

/** An echo that no browser takes for anything but text. */
export function plain(text: string, status = 200): Greeting {
  return { answer: answerOf(status, 'text/plain; charset=utf-8', text) };
}

export function json(value: unknown): Greeting {
  return { answer: answerOf(200, 'application/json', JSON.stringify(value)) };
}

export function empty(status: number): Greeting {
  return { answer: answerOf(status, undefined, '') };
}

function answerOf(status: number, type: string | undefined, text: string): HandshakeAnswer {
  const body = Buffer.from(text);
  if (status === 204) return { status, headers: [], body };
  const typed = type === undefined ? [] : ['Content-Type', type, 'X-Content-Type-Options', 'nosniff'];
  return { status, headers: [...typed, 'Content-Length', String(body.length)], body };
}

/** One parameter of the request's query, decoded; undefined when it is missing or there more than once. */
export function queryValue(target: string, name: string): string | undefined {
  const mark = target.indexOf('?');
  if (mark === -1) return undefined;
  const values = new URLSearchParams(target.slice(mark + 1)).getAll(name);
  return values.length === 1 ? values[0] : undefined;
}
