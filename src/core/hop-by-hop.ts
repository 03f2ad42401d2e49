import type { RawHeaders } from './delivery.ts';

/** RFC 9110 7.6.1, and what is meant for the next hop alone by its own definition (11.7.1, 6.6.2). */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** The lines that go on to the next hop; what a `Connection` line names goes too. */
export function withoutHopByHop(headers: RawHeaders): string[] {
  const named = new Set<string>();
  for (let i = 0; i + 1 < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() !== 'connection') continue;
    for (const token of headers[i + 1]!.split(',')) named.add(token.trim().toLowerCase());
  }
  const kept: string[] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i]!.toLowerCase();
    if (!HOP_BY_HOP.has(name) && !(named.has(name) && mayBeNamed(name))) kept.push(headers[i]!, headers[i + 1]!);
  }
  return kept;
}

/** What a sender cannot take away by `Connection`: the host, where the body ends, and what the gateway itself says. */
function mayBeNamed(name: string): boolean {
  return !/^(host|content-length|forwarded|x-forwarded-.*|hookonce-.*)$/.test(name);
}
