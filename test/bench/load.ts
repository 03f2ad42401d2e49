/** The sender: a process that does as little as possible per delivery, so that the machine is left to what is measured. */
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { deliveryOf } from './delivery.ts';
import { serve } from './worker.ts';

export type LoadTask =
  /** Each connection sends its next delivery when the last is answered, until time or number is used up. */
  | {
      readonly kind: 'busy';
      readonly port: number;
      readonly connections: number;
      readonly ms?: number;
      readonly deliveries?: number;
      /** Events are `<prefix>-0`, `<prefix>-1`…; with `cycle` that many, again and again. */
      readonly prefix: string;
      readonly cycle?: number;
    }
  /** Each port gets so many deliveries per second, in turns, whatever becomes of them. */
  | {
      readonly kind: 'paced';
      readonly ports: readonly number[];
      readonly perSecond: number;
      readonly ms: number;
      readonly prefix: string;
    };

export interface LoadAnswer {
  /** Answered 2xx. */
  readonly delivered: number;
  readonly failed: number;
  readonly ms: number;
  /** Milliseconds from the first byte sent to the whole answer, per port; only of `paced`. */
  readonly latencies: readonly (readonly number[])[];
}

/** A connection with one delivery on its way at a time. */
interface Lane {
  /** Resolves with the status. */
  send(bytes: string): Promise<number>;
  readonly socket: Socket;
}

async function openLane(port: number): Promise<Lane> {
  const socket = connect(port, '127.0.0.1').setNoDelay(true);
  await once(socket, 'connect');
  let answered: PromiseWithResolvers<number> | undefined;
  let pending = '';
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    pending += chunk;
    const end = pending.indexOf('\r\n\r\n');
    if (end === -1) return;
    const length = /\r\ncontent-length: (\d+)/i.exec(pending);
    if (length === null) return void socket.destroy(new Error(`an answer without length: ${pending}`));
    if (pending.length < end + 4 + Number(length[1])) return;
    const status = Number(pending.slice(9, 12));
    pending = '';
    answered?.resolve(status);
  });
  socket.on('error', (error) => answered?.reject(error));
  socket.on('close', () => answered?.reject(new Error('closed without an answer')));
  return {
    socket,
    async send(bytes) {
      answered = Promise.withResolvers();
      socket.write(bytes, 'latin1');
      return await answered.promise;
    },
  };
}

serve(async (task: LoadTask): Promise<LoadAnswer> => (task.kind === 'busy' ? await busy(task) : await paced(task)));

async function busy(task: Extract<LoadTask, { kind: 'busy' }>): Promise<LoadAnswer> {
  const { port, connections, ms = Infinity, deliveries = Infinity, prefix, cycle = Infinity } = task;
  const lanes = await Promise.all(Array.from({ length: connections }, () => openLane(port)));
  let [next, delivered, failed] = [0, 0, 0];
  const startedMs = performance.now();
  await Promise.all(
    lanes.map(async (lane) => {
      while (next < deliveries && performance.now() - startedMs < ms) {
        const status = await lane.send(deliveryOf(`${prefix}-${next++ % cycle}`));
        if (status >= 200 && status < 300) delivered += 1;
        else failed += 1;
      }
    }),
  );
  const tookMs = performance.now() - startedMs;
  for (const { socket } of lanes) socket.destroy();
  return { delivered, failed, ms: tookMs, latencies: [] };
}

async function paced({ ports, perSecond, ms, prefix }: Extract<LoadTask, { kind: 'paced' }>): Promise<LoadAnswer> {
  const idle: Lane[][] = ports.map(() => []);
  const latencies: number[][] = ports.map(() => []);
  let [delivered, failed] = [0, 0];
  const one = async (at: number, id: string): Promise<void> => {
    const lane = idle[at]!.pop() ?? (await openLane(ports[at]!));
    const sentMs = performance.now();
    const status = await lane.send(deliveryOf(id));
    latencies[at]!.push(performance.now() - sentMs);
    if (status >= 200 && status < 300) delivered += 1;
    else failed += 1;
    idle[at]!.push(lane);
  };
  const stepMs = 1_000 / perSecond / ports.length;
  const startedMs = performance.now();
  const sent: Promise<void>[] = [];
  for (let n = 0; n * stepMs < ms; n += 1) {
    await sleep(Math.max(0, startedMs + n * stepMs - performance.now()));
    sent.push(one(n % ports.length, `${prefix}-${n}`));
  }
  await Promise.all(sent);
  for (const { socket } of idle.flat()) socket.destroy();
  return { delivered, failed, ms: performance.now() - startedMs, latencies };
}
