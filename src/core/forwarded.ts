/**
 * What the application is told about who is on the other side of the gateway.
 *
 * | header              | `trustedProxies` is empty, or the peer is one of them | another peer           |
 * | `X-Forwarded-For`   | what came, and the peer after it                      | the peer               |
 * | `X-Forwarded-Proto` | what came, else `http`                                | `http`                 |
 * | others of the kind  | what came                                             | none                   |
 *
 * So without `trustedProxies` the application sees what it would see without the gateway, with the gateway's
 * peer appended, and decides for itself whom it believes. The gateway itself believes nobody then.
 */
import { header, type Peer, type RawHeaders } from './delivery.ts';

/** What proxies say about those before them: the usual names, and RFC 7239. */
const SAID_BY_PROXIES = /^(x-forwarded-.*|x-real-ip|forwarded)$/i;

/** The lines in their order, with what the gateway says of its own peer. Without a peer they stay as they are. */
export function withForwarded(headers: RawHeaders, peer: Peer | undefined): string[] {
  if (peer === undefined) return [...headers];
  const lines: string[] = [];
  let forAt = -1;
  let proto = false;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]!;
    if (!peer.believed && SAID_BY_PROXIES.test(name)) continue;
    const lower = name.toLowerCase();
    if (lower === 'x-forwarded-for') forAt = lines.length + 1;
    if (lower === 'x-forwarded-proto') proto = true;
    lines.push(name, headers[i + 1]!);
  }
  if (forAt === -1) lines.push('X-Forwarded-For', peer.address);
  else lines[forAt] = lines[forAt]!.trim() === '' ? peer.address : `${lines[forAt]}, ${peer.address}`;
  if (!proto) lines.push('X-Forwarded-Proto', 'http');
  return lines;
}

/** The same lines for another authority; what was asked for moves into `X-Forwarded-Host`, unless a proxy said that already. */
export function withHost(headers: RawHeaders, authority: string): string[] {
  const asked = header(headers, 'host');
  const lines = ['Host', authority];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() !== 'host') lines.push(headers[i]!, headers[i + 1]!);
  }
  if (asked !== undefined && header(headers, 'x-forwarded-host') === undefined) lines.push('X-Forwarded-Host', asked);
  return lines;
}
