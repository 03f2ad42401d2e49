/** A TCP balancer that sends new connections to whoever is ready, as a Service does: it asks now and then, and learns late. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { systemClock } from '../../src/clock.ts';
import { exchange } from '../../src/demo/exchange.ts';
import type { Gateway } from '../../src/demo/gateway.ts';

export interface Balancer extends AsyncDisposable {
  readonly url: string;
  /** Who gets new connections now. */
  readonly ready: ReadonlySet<Gateway>;
  /** Connections that a gateway did not take although it was thought to be ready. */
  refused(): number;
}

/** How long it may send connections to somebody who has said to be not ready any more. */
const LATE_MS = 300;

export async function startBalancer(gateways: readonly Gateway[]): Promise<Balancer> {
  const ready = new Set<Gateway>(gateways);
  const sockets = new Set<Socket>();
  let [refused, turn, over] = [0, 0, false];

  const asking = (async (): Promise<void> => {
    while (!over) {
      for (const gateway of gateways) {
        const reply = await exchange(`${gateway.adminUrl}/readyz`, {}, { timeoutMs: 1_000 }).catch(() => undefined);
        if (reply?.status === 200) ready.add(gateway);
        else ready.delete(gateway);
      }
      await systemClock.sleep(LATE_MS);
    }
  })();

  const server = createServer({ allowHalfOpen: true }, (client) => {
    const choice = [...ready];
    const gateway = choice[(turn += 1) % choice.length];
    if (gateway === undefined) return void client.destroy();
    const { hostname, port } = new URL(gateway.url);
    const backend = connect({ port: Number(port), host: hostname, allowHalfOpen: true });
    for (const [one, other] of [
      [client, backend],
      [backend, client],
    ] as const) {
      sockets.add(one);
      one.pipe(other);
      one.once('close', () => {
        sockets.delete(one);
        other.destroySoon();
      });
    }
    client.on('error', () => {});
    backend.on('error', (error: NodeJS.ErrnoException) => void (error.code === 'ECONNREFUSED' && (refused += 1)));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ready,
    refused: () => refused,
    async [Symbol.asyncDispose]() {
      over = true;
      await asking;
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
