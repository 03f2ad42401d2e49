/** Signed deliveries with the secrets of `config.ts`. */
import { systemClock } from '../../src/clock.ts';
import * as signers from '../../src/demo/signers.ts';
import { header, type RawHeaders } from '../../src/core/delivery.ts';
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

/** For a route with sender slack, signed now; the event is named by the JSON body's `event_id`. */
export function slack(body: string | Buffer, more: RawHeaders = []): signers.Signed {
  const bytes = Buffer.from(body);
  const t = String(Math.floor(systemClock.wall() / 1000));
  const signature = `v0=${signers.hmacHex(secrets.custom, `v0:${t}:`, bytes)}`;
  const headers = ['Content-Type', 'application/json', 'X-Slack-Request-Timestamp', t, 'X-Slack-Signature', signature];
  return { headers: [...headers, ...more], body: bytes };
}

/** For a route with sender shopify: the event is named by `X-Shopify-Webhook-Id`. */
export function shopify(id: string, body: string | Buffer): signers.Signed {
  const bytes = Buffer.from(body);
  const signature = Buffer.from(signers.hmacHex(secrets.custom, bytes), 'hex').toString('base64');
  const named = ['X-Shopify-Webhook-Id', id, 'X-Shopify-Hmac-Sha256', signature];
  return { headers: ['Content-Type', 'application/json', ...named], body: bytes };
}

export function outcome(reply: Reply): string | undefined {
  return header(reply.headers, 'hookonce-outcome');
}

export function retryAfter(reply: Reply): number {
  return Number(header(reply.headers, 'retry-after') ?? 'NaN');
}
