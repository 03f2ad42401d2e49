/** Header lines as they go out, byte for byte. */
import { STATUS_CODES } from 'node:http';
import type { RawHeaders } from '../core/delivery.ts';

/**
 * The same lines in an order that Node writes as they are: it reads a `Content-Disposition` that comes after
 * `Content-Length` as text, and refuses or changes bytes beyond ASCII in it. So the length goes last then.
 */
export function writable(headers: RawHeaders): RawHeaders {
  const named = headers.findIndex((name, i) => i % 2 === 0 && /^content-disposition$/i.test(name));
  // eslint-disable-next-line no-control-regex -- the bytes of ASCII are meant.
  if (named === -1 || /^[\x00-\x7f]*$/.test(headers[named + 1]!)) return headers;
  const isLength = (i: number): boolean => /^content-length$/i.test(headers[i - (i % 2)]!);
  return [...headers.filter((_, i) => !isLength(i)), ...headers.filter((_, i) => isLength(i))];
}

/** A response's head whole, one character per byte. */
export function head(status: number, headers: RawHeaders, reason = STATUS_CODES[status] ?? ''): string {
  const lines = headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}\r\n`] : []));
  return `HTTP/1.1 ${status} ${reason}\r\n${lines.join('')}\r\n`;
}

/** Name and value two by two, as Node wants trailers. */
export function pairs(headers: RawHeaders): [string, string][] {
  return headers.flatMap((name, i): [string, string][] => (i % 2 === 0 ? [[name, headers[i + 1]!]] : []));
}

/** Whether a message names this option in its `Connection` lines (RFC 9110 7.6.1). */
export function names(connection: string | undefined, option: string): boolean {
  return (connection ?? '').split(',').some((each) => each.trim().toLowerCase() === option);
}
