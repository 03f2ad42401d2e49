import type { IncomingMessage } from 'node:http';
import type { Clock } from '../core/ports.ts';

/** Throws away what is still to come of a body that nobody wants any more; a client that goes on for longer than `ms` is cut off. */
export function discardRest(req: IncomingMessage, clock: Clock, ms: number): void {
  if (req.complete || req.destroyed) return;
  req.resume();
  const cancel = clock.timer(ms, () => req.socket.destroy());
  req.once('close', cancel);
}
