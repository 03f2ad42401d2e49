/** The header lines of what is passed through: as they came, but for what is meant for one hop alone. */
import type { IncomingMessage } from 'node:http';
import { allHeaders, header, type Peer, type RawHeaders } from '../core/delivery.ts';
import { withoutOwn } from '../core/forward.ts';
import { withForwarded, withHost } from '../core/forwarded.ts';
import { withoutHopByHop } from '../core/hop-by-hop.ts';
import { writable } from './lines.ts';

/** `authority`: what the application is called; `keepHost`: but the client's word for it goes on. */
export function requestLines(
  req: IncomingMessage,
  peer: Peer | undefined,
  { authority, keepHost }: { readonly authority: string; readonly keepHost: boolean },
): RawHeaders {
  const lines = withForwarded(passedOn(req.rawHeaders), peer);
  const named = keepHost && header(lines, 'host') !== undefined ? lines : withHost(lines, authority);
  return writable([...named, ...(isChunked(req) ? ['Transfer-Encoding', 'chunked', ...trailerNames(req)] : [])]);
}

/** Of an answer without content (RFC 9110 15.3.5) no length; names of trailers only where trailers can follow. */
export function replyLines(reply: IncomingMessage, client: Pick<IncomingMessage, 'httpVersion'>): RawHeaders {
  const lines = withoutHopByHop(reply.rawHeaders);
  if (reply.statusCode === 204) return without(lines, 'content-length');
  return writable(isChunked(reply) && client.httpVersion === '1.1' ? [...lines, ...trailerNames(reply)] : lines);
}

/** What goes on of the lines of a request, or of its trailers. */
export function passedOn(headers: RawHeaders): string[] {
  return withoutOwn(withoutHopByHop(headers));
}

/** What stands in an upgrade beside the lines of an ordinary request. */
export function upgradeLines(protocol: string): RawHeaders {
  return ['Connection', 'Upgrade', 'Upgrade', protocol];
}

export function hasBody(req: IncomingMessage): boolean {
  return isChunked(req) || Number(req.headers['content-length'] ?? 0) > 0;
}

function isChunked(message: IncomingMessage): boolean {
  return message.headers['transfer-encoding'] !== undefined;
}

function trailerNames(message: IncomingMessage): string[] {
  return allHeaders(message.rawHeaders, 'trailer').flatMap((value) => ['Trailer', value]);
}

function without(headers: RawHeaders, unwanted: string): string[] {
  return headers.filter((_, i) => headers[i - (i % 2)]!.toLowerCase() !== unwanted);
}
