/** Requests down to their bytes, for what no HTTP client would send. */
import { connect } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { systemClock } from '../../src/clock.ts';
import type { RawHeaders } from '../../src/core/delivery.ts';
import type { Reply } from '../../src/demo/exchange.ts';

/** Writes each piece by itself, as segments of their own, and reads the answer until the server closes. */
export async function rawExchange(url: string, pieces: readonly (string | Buffer)[]): Promise<Reply> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.setNoDelay(true);
  const answer = buffer(socket);
  for (const piece of pieces) {
    await new Promise((resolve) => socket.write(piece, resolve));
    // Pacing only: the pieces leave apart, so that the gateway reads them apart.
    if (pieces.length > 1) await systemClock.sleep(10);
  }
  return parse(await answer);
}

/** The head of a POST with `Connection: close`; `lines` are whole header lines. */
export function postHead(url: string, lines: readonly string[]): string {
  const { host, pathname } = new URL(url);
  return [`POST ${pathname} HTTP/1.1`, `Host: ${host}`, 'Connection: close', ...lines, '', ''].join('\r\n');
}

/** Header lines of the flat form. */
export function headerLines(headers: RawHeaders): string[] {
  return headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1]}`] : []));
}

function parse(bytes: Buffer): Reply {
  const end = bytes.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = bytes.subarray(0, Math.max(end, 0)).toString('latin1').split('\r\n');
  const headers = lines.flatMap((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
  return { status: Number(statusLine.split(' ')[1] ?? 0), headers, body: bytes.subarray(end + 4) };
}
