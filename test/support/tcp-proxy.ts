/** A TCP proxy before one server, on which the network can be made to fail. */
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Clock } from '../../src/core/ports.ts';

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Drops all connections, and every new one. */
  cut(): void;
  /** Accepts and delivers nothing, either way; what is on its way arrives after `heal`. */
  stall(): void;
  /** Answers come this many milliseconds later. */
  delay(ms: number): void;
  /** Requests arrive, answers never do; `heal` drops the connections that lost some. */
  loseReplies(): void;
  heal(): void;
  /** What is connected now never hears anything more; new connections are as good as ever. */
  forsake(): void;
  /** Where new connections lead. */
  retarget(port: number): void;
}

type Mode = { kind: 'pass' } | { kind: 'cut' } | { kind: 'stall' } | { kind: 'lose' } | { kind: 'delay'; ms: number };

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  lost: boolean;
  forsaken: boolean;
  /** Answers on their way, in order. */
  answers: Promise<void>;
}

export async function startTcpProxy(clock: Clock, server: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  let target = server;
  let mode: Mode = { kind: 'pass' };

  const drop = (pair: Pair): void => {
    pairs.delete(pair);
    pair.client.destroy();
    pair.server.destroy();
  };
  const flow = ({ client, server, forsaken }: Pair): void => {
    for (const socket of [client, server]) {
      if (mode.kind === 'stall' || forsaken) socket.pause();
      else socket.resume();
    }
  };
  const set = (wanted: Mode): void => {
    mode = wanted;
    for (const pair of pairs) {
      if (mode.kind === 'cut' || pair.lost) drop(pair);
      else flow(pair);
    }
  };
  const pass = (pair: Pair, chunk: Buffer): void => {
    if (mode.kind === 'lose') pair.lost = true;
    else if (mode.kind === 'delay') {
      const due = clock.sleep(mode.ms);
      pair.answers = pair.answers.then(() => due).then(() => void pair.client.write(chunk));
    } else pair.answers = pair.answers.then(() => void pair.client.write(chunk));
  };

  const listener = createServer((client) => {
    if (mode.kind === 'cut') return void client.destroy();
    const pair: Pair = {
      client,
      server: connect(target, '127.0.0.1'),
      lost: false,
      forsaken: false,
      answers: Promise.resolve(),
    };
    pairs.add(pair);
    client.on('data', (chunk) => pair.server.write(chunk));
    pair.server.on('data', (chunk: Buffer) => pass(pair, chunk));
    for (const socket of [client, pair.server]) {
      socket.setNoDelay(true);
      socket.on('close', () => drop(pair));
      // Whatever broke, the other side is told by the close that follows.
      socket.on('error', () => {});
    }
    flow(pair);
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as AddressInfo;

  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    cut: () => set({ kind: 'cut' }),
    stall: () => set({ kind: 'stall' }),
    delay: (ms) => set({ kind: 'delay', ms }),
    loseReplies: () => set({ kind: 'lose' }),
    heal: () => set({ kind: 'pass' }),
    forsake() {
      for (const pair of pairs) pair.forsaken = true;
      set({ kind: 'pass' });
    },
    retarget: (port) => void (target = port),
    async [Symbol.asyncDispose]() {
      set({ kind: 'cut' });
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}
