/** One request to the application as a stream, and its answer back. */
import type { ClientRequest, IncomingMessage, InformationEvent, OutgoingMessage, ServerResponse } from 'node:http';
import { withoutHopByHop } from '../core/hop-by-hop.ts';
import type { Clock } from '../core/ports.ts';
import { head, pairs } from './lines.ts';
import { hasBody, passedOn, replyLines } from './proxy-lines.ts';

/** The body with its trailers; the client is read no faster than the application takes it. */
export function sendBody(req: IncomingMessage, out: ClientRequest, clock: Clock): void {
  if (!hasBody(req)) return void out.end();
  stream(req, out, clock);
  req.once('end', () => {
    out.addTrailers(pairs(passedOn(req.rawTrailers)));
    out.end();
  });
}

/** Node keeps a head back until there is a body: it leaves at the end of this turn, as the body may be long in coming. */
function stream(from: IncomingMessage, to: OutgoingMessage, clock: Clock): void {
  let begun = false;
  from.pipe(to, { end: false });
  from.once('data', () => (begun = true));
  from.once('end', () => (begun = true));
  clock.soon(() => {
    if (!begun) to.flushHeaders();
  });
}

/** An answer before the answer (RFC 9110 15.2). A client of HTTP/1.0, or one that is still reading an earlier answer, does without. */
export function relayInformation(info: InformationEvent, res: ServerResponse): void {
  if (res.headersSent || res.req.httpVersion !== '1.1') return;
  if (info.statusCode === 100) return res.writeContinue();
  res.socket?.write(head(info.statusCode, withoutHopByHop(info.rawHeaders), info.statusMessage), 'latin1');
}

/** `last`: the connection is closed after it. `broken`: the application broke off before the end. */
export function relayReply(
  reply: IncomingMessage,
  res: ServerResponse,
  { clock, last, broken }: { readonly clock: Clock; readonly last: boolean; readonly broken: () => void },
): void {
  const lines = replyLines(reply, res.req);
  res.writeHead(reply.statusCode!, reply.statusMessage, [...lines, ...(last ? ['Connection', 'close'] : [])]);
  stream(reply, res, clock);
  reply.once('end', () => {
    res.addTrailers(pairs(withoutHopByHop(reply.rawTrailers)));
    res.end();
  });
  reply.once('error', () => {});
  reply.once('close', () => {
    if (!reply.complete) broken();
  });
}
