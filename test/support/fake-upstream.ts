/** An application in memory, for tests of the spine: it plays one step per request, and answers 200 after the last. */
import type { AppReply } from '../../src/core/delivery.ts';
import type { AppRequest, AppResult, Clock, Upstream } from '../../src/core/ports.ts';

export type Step =
  /** Answers, as soon as `when` resolves. */
  | { readonly kind: 'answer'; readonly reply: AppReply; readonly when?: Promise<unknown> }
  /** Reads the request and breaks the connection, as soon as `when` resolves. */
  | { readonly kind: 'reset'; readonly when?: Promise<unknown> }
  /** Takes no connection. */
  | { readonly kind: 'refuse' };

export function reply(status: number, body = ''): AppReply {
  const bytes = Buffer.from(body);
  return { status, headers: ['Content-Length', `${bytes.length}`], body: bytes };
}

export class FakeUpstream implements Upstream {
  /** What reached the application. */
  readonly requests: AppRequest[] = [];
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #steps: Step[] = [];

  constructor(clock: Clock, timeoutMs = 15_000) {
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  /** What to do with the next requests, one step each. */
  next(...steps: readonly Step[]): void {
    this.#steps.push(...steps);
  }

  async send(request: AppRequest, mayStart: () => boolean): Promise<AppResult> {
    const step = this.#steps.shift() ?? { kind: 'answer', reply: reply(200) };
    const begun = this.#clock.now();
    await Promise.resolve();
    if (step.kind === 'refuse') return { kind: 'never-sent', why: 'unreachable', message: 'connection refused' };
    if (!mayStart()) return { kind: 'never-sent', why: 'expired', message: 'too late' };
    this.requests.push(request);

    return await new Promise((resolve) => {
      const late = Promise.withResolvers<AppReply | undefined>();
      const cut = (): void => late.resolve(undefined);
      const cancel = this.#clock.timer(this.#timeoutMs, () =>
        resolve({ kind: 'unknown', how: 'timeout', late: late.promise, cut }),
      );
      void Promise.resolve(step.when).then(() => {
        cancel();
        if (step.kind === 'answer') {
          resolve({ kind: 'answered', reply: step.reply, upstreamMs: this.#clock.now() - begun });
          late.resolve(step.reply);
        } else {
          resolve({ kind: 'unknown', how: 'reset', late: late.promise, cut });
          late.resolve(undefined);
        }
      });
    });
  }
}
