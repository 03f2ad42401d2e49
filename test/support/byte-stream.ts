/** A client connection read piece by piece, for answers that have no end or come in parts. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface ByteStream extends Disposable {
  readonly socket: Socket;
  write(bytes: string | Buffer): void;
  /** Everything that came, up to and with the first place where `pattern` matches; what is behind it stays. */
  until(pattern: RegExp): Promise<string>;
  /** Everything that came, once the server has closed. */
  rest(): Promise<string>;
}

export async function openStream(port: number): Promise<ByteStream> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  await once(socket, 'connect');
  let came = '';
  let ended = false;
  let wake = (): void => {};
  socket.on('data', (chunk: Buffer) => {
    came += chunk.toString('latin1');
    wake();
  });
  const end = (): void => {
    ended = true;
    wake();
  };
  socket.on('error', end).on('end', end).on('close', end);
  const more = async (): Promise<void> => await new Promise<void>((resolve) => (wake = resolve));
  return {
    socket,
    write: (bytes) => void socket.write(bytes, 'latin1'),
    async until(pattern) {
      for (;;) {
        const found = pattern.exec(came);
        if (found !== null) {
          const upTo = found.index + found[0].length;
          const taken = came.slice(0, upTo);
          came = came.slice(upTo);
          return taken;
        }
        if (ended) throw new Error(`ended without ${pattern}, after ${JSON.stringify(came)}`);
        await more();
      }
    },
    async rest() {
      while (!ended) await more();
      const taken = came;
      came = '';
      return taken;
    },
    [Symbol.dispose]: () => void socket.destroy(),
  };
}
