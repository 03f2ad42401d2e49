/**
 * Keys and certificates that senders publish, read over https by undici. The address comes out of a delivery
 * that nobody has verified yet: the sender's preset has made sure whose it is, and here it is bounded what a
 * flood of such deliveries can cause. Redirects are not followed: they could lead anywhere.
 */
import type { Agent, request } from 'undici';
import type { Clock, Events, KeyRequest, SenderKeys } from './core/ports.ts';

type AskOptions = NonNullable<Parameters<typeof request>[1]>;

/** From the question to the last byte of the answer; a sender waits little longer for its own. */
const TIMEOUT_MS = 3_000;
const MAX_BYTES = 64 * 1024;
/** Questions on their way at the same time; more get no answer. */
const MAX_OPEN = 4;
/** Documents kept. */
const MAX_KEPT = 100;
/** A key that was withdrawn is believed for so long. */
const KEPT_MS = 24 * 3_600_000;
/** After a failure the same question is not sent again for so long; so many failures are remembered. */
const FAILED_MS = 10_000;
const MAX_FAILED = 1_000;

/** `connect`: trust of other certificates than those of the system, for tests. */
export function createSenderKeys(
  clock: Clock,
  events: Pick<Events, 'warn'>,
  connect: { readonly ca?: string } = {},
): SenderKeys & AsyncDisposable {
  // Loaded by the first question: few senders publish their keys.
  let agent: Agent | undefined;
  const kept = new Map<string, { readonly text: string; readonly untilMs: number }>();
  const failed = new Map<string, number>();
  const open = new Map<string, Promise<string | undefined>>();
  let visits = 0;

  const send = async (url: string, options: AskOptions) => {
    const undici = await import('undici');
    agent ??= new undici.Agent({
      connections: MAX_OPEN,
      connect: { ...connect, timeout: TIMEOUT_MS },
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
      maxResponseSize: MAX_BYTES,
    });
    return await undici.request(url, { ...options, dispatcher: agent });
  };

  /** The body of an answer with success. */
  const read = async ({ url, question }: KeyRequest): Promise<string | undefined> => {
    if (!url.startsWith('https://')) return undefined;
    const { origin } = new URL(url);
    const late = new AbortController();
    const cancel = clock.timer(TIMEOUT_MS, () => late.abort());
    try {
      const asked = question && {
        method: 'POST' as const,
        body: JSON.stringify(question),
        headers: { 'content-type': 'application/json' },
      };
      const { statusCode, body } = await send(url, { ...asked, signal: late.signal });
      const text = await body.text();
      if (statusCode >= 200 && statusCode <= 299) return text;
      events.warn('a sender did not hand out what it publishes', { origin, status: statusCode });
    } catch (error) {
      events.warn('what a sender publishes could not be read', { origin, error });
    } finally {
      cancel();
    }
    return undefined;
  };

  return {
    async get(request) {
      const name = JSON.stringify([request.url, request.question]);
      const found = kept.get(name);
      if (found && clock.now() < found.untilMs) {
        kept.delete(name);
        kept.set(name, found);
        return found.text;
      }
      const asking = open.get(name);
      if (asking) return await asking;
      if (open.size >= MAX_OPEN || clock.now() < (failed.get(name) ?? 0)) return undefined;
      const asked = read(request);
      open.set(name, asked);
      const text = await asked;
      open.delete(name);
      if (text === undefined) remember(failed, MAX_FAILED, name, clock.now() + FAILED_MS);
      else remember(kept, MAX_KEPT, name, { text, untilMs: clock.now() + KEPT_MS });
      return text;
    },
    async visit(url) {
      if (visits >= MAX_OPEN) return false;
      visits += 1;
      const text = await read({ url });
      visits -= 1;
      return text !== undefined;
    },
    async [Symbol.asyncDispose]() {
      await agent?.destroy();
    },
  };
}

/** The newest last; what was not touched for longest makes room. */
function remember<V>(map: Map<string, V>, limit: number, name: string, value: V): void {
  map.delete(name);
  map.set(name, value);
  const [oldest] = map.keys();
  if (map.size > limit) map.delete(oldest!);
}
