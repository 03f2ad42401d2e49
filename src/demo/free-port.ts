import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

// Below every usual range of ephemeral ports, so that no outgoing connection takes a port while its server restarts.
const lowest = 12_000;
const highest = 32_000;

let next = randomInt(lowest, highest);

/** A TCP port on 127.0.0.1 that nobody listens on, never the same one twice in a row. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = next;
    next = next + 1 < highest ? next + 1 : lowest;
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
