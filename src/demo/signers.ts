/** Signed deliveries as their senders make them. */
import { createHmac } from 'node:crypto';
import type { RawHeaders } from '../core/delivery.ts';

export interface Signed {
  readonly headers: RawHeaders;
  readonly body: Buffer;
}

export function hmacHex(secret: string, ...parts: readonly (string | Buffer)[]): string {
  const hmac = createHmac('sha256', secret);
  for (const part of parts) hmac.update(part);
  return hmac.digest('hex');
}

/** `X-Hub-Signature-256` over the body; the event is named by `X-GitHub-Delivery`. */
export function github(secret: string, id: string, body: Buffer, contentType = 'application/json'): Signed {
  const headers = [
    ...['Content-Type', contentType, 'User-Agent', 'GitHub-Hookshot/0000000', 'X-GitHub-Event', 'push'],
    ...['X-GitHub-Delivery', id, 'X-Hub-Signature-256', `sha256=${hmacHex(secret, body)}`],
  ];
  return { headers, body };
}

/** `Stripe-Signature` over `t.body`; the event is named by the body's `id`. `wallMs`: when it was signed. */
export function stripe(secret: string, body: Buffer, wallMs: number): Signed {
  const t = Math.floor(wallMs / 1000);
  const signature = `t=${t},v1=${hmacHex(secret, `${t}.`, body)}`;
  return { headers: ['Content-Type', 'application/json; charset=utf-8', 'Stripe-Signature', signature], body };
}
