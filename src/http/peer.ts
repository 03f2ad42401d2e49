/** Who is on the other side of a connection, and how far what it says about others is believed. */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { allHeaders, type Peer } from '../core/delivery.ts';

export interface Peers {
  /** undefined: the connection is gone, or has no address. */
  of(req: IncomingMessage): Peer | undefined;
  /** The address that the request came from first, as far as proxies that are trusted tell it. */
  client(req: IncomingMessage): string | undefined;
}

/** `trustedProxies`: networks, such as `10.0.0.0/8` or `fd00::/8`. */
export function createPeers(trustedProxies: readonly string[]): Peers {
  const trusted = new BlockList();
  for (const network of trustedProxies) {
    const [address = '', prefix] = network.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    trusted.addSubnet(address, prefix === undefined ? (family === 'ipv6' ? 128 : 32) : Number(prefix), family);
  }
  const trusts = (address: string): boolean => trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');

  return {
    of(req) {
      const address = plain(req.socket.remoteAddress);
      return address === undefined ? undefined : { address, believed: trustedProxies.length === 0 || trusts(address) };
    },
    client(req) {
      let client = plain(req.socket.remoteAddress);
      // From the nearest to the farthest: each address is believed as long as the one that names it is trusted.
      const named = allHeaders(req.rawHeaders, 'x-forwarded-for').flatMap((line) => line.split(','));
      for (const next of named.toReversed().map((each) => plain(each.trim()))) {
        if (client === undefined || !trusts(client) || next === undefined) break;
        client = next;
      }
      return client;
    },
  };
}

/** An address in its own form: sockets that listen for IPv6 give IPv4 as `::ffff:10.0.0.9`. */
function plain(address: string | undefined): string | undefined {
  if (address === undefined || isIP(address) === 0) return undefined;
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}
