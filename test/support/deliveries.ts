/** Signed deliveries with the secrets of `config.ts`. */
import { systemClock } from '../../src/clock.ts';
import * as signers from '../../src/demo/signers.ts';
import { header } from '../../src/core/delivery.ts';
import type { Reply } from '../../src/demo/exchange.ts';
import { secrets } from './config.ts';

export function github(id: string, body: string | Buffer = `{"a":1}`, secret: string = secrets.github): signers.Signed {
  return signers.github(secret, id, Buffer.from(body));
}

/** `ageMs`: how long ago it was signed; negative for the future. */
export function stripe(body: string | Buffer, ageMs = 0): signers.Signed {
  return signers.stripe(secrets.stripe, Buffer.from(body), systemClock.wall() - ageMs);
}

/** For the route `custom`: the event is named by the JSON body's `id`. */
export function custom(body: string | Buffer): signers.Signed {
  const bytes = Buffer.from(body);
  return {
    headers: ['Content-Type', 'application/json', 'X-Signature', `sha256=${signers.hmacHex(secrets.custom, bytes)}`],
    body: bytes,
  };
}

export function outcome(reply: Reply): string | undefined {
  return header(reply.headers, 'hookonce-outcome');
}

export function retryAfter(reply: Reply): number {
  return Number(header(reply.headers, 'retry-after') ?? 'NaN');
}
