/** The application, as light as one can be: it reads whole requests and answers 200. Its task: how many there have been. */
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { serve } from './worker.ts';

export interface ApplicationAnswer {
  readonly port: number;
  readonly requests: number;
}

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok';
let requests = 0;

const server = createServer({ noDelay: true }, (socket) => {
  let pending = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    pending += chunk;
    for (let end = pending.indexOf('\r\n\r\n'); end !== -1; end = pending.indexOf('\r\n\r\n')) {
      const length = /\r\ncontent-length: (\d+)/i.exec(pending);
      if (length === null) return void socket.destroy();
      const whole = end + 4 + Number(length[1]);
      if (pending.length < whole) return;
      pending = pending.slice(whole);
      requests += 1;
      socket.write(ANSWER, 'latin1');
    }
  });
  socket.on('error', () => undefined);
});
server.listen(0, '127.0.0.1');
const listening = once(server, 'listening');

serve(async (): Promise<ApplicationAnswer> => {
  await listening;
  return { port: (server.address() as AddressInfo).port, requests };
});
