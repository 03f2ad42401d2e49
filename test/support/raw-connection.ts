/** One client connection that a test writes bytes to and reads answers from. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  /** Header lines as they came, without the status line. */
  readonly lines: readonly string[];
  readonly body: string;
}

export interface RawConnection {
  readonly socket: Socket;
  write(bytes: string | Buffer): void;
  /** The next whole answer (its length must be stated); informational ones count. */
  answer(): Promise<RawAnswer>;
  /** Resolves when the server has closed the connection; with an error when it reset it. */
  readonly closed: Promise<Error | undefined>;
}

export async function openConnection(port: number): Promise<RawConnection> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.setNoDelay(true);
  let received: Buffer = Buffer.alloc(0);
  let error: Error | undefined;
  let over = false;
  let wake = (): void => undefined;
  const closed = new Promise<Error | undefined>((resolve) => {
    socket.once('close', () => {
      over = true;
      wake();
      resolve(error);
    });
  });
  socket.on('error', (caught) => (error = caught));
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    wake();
  });
  return {
    socket,
    closed,
    write: (bytes) => void socket.write(bytes, 'latin1'),
    async answer() {
      for (;;) {
        const found = split(received);
        if (found !== undefined) {
          received = found.rest;
          return found.answer;
        }
        if (over) throw new Error(`closed after ${JSON.stringify(received.toString('latin1'))}`, { cause: error });
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}

/** One request on a connection of its own, which is closed after the first answer. */
export async function ask(port: number, bytes: string | Buffer): Promise<RawAnswer> {
  const connection = await openConnection(port);
  connection.write(bytes);
  try {
    return await connection.answer();
  } finally {
    connection.socket.destroy();
  }
}

export function headerOf(answer: RawAnswer, name: string): string | undefined {
  const line = answer.lines.find((each) => each.toLowerCase().startsWith(`${name.toLowerCase()}:`));
  return line?.slice(line.indexOf(':') + 1).trim();
}

function split(bytes: Buffer): { answer: RawAnswer; rest: Buffer } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end === -1) return undefined;
  const [statusLine = '', ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const status = Number(statusLine.split(' ')[1]);
  const stated = lines.find((line) => /^content-length:/i.test(line))?.split(':')[1];
  const length = status < 200 || status === 204 || status === 304 ? 0 : Number(stated ?? 0);
  const start = end + 4;
  if (bytes.length < start + length) return undefined;
  const body = bytes.subarray(start, start + length).toString('latin1');
  return { answer: { status, lines, body }, rest: bytes.subarray(start + length) };
}
