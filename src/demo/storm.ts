/** The retry storm: every event several times at the same instant over all gateways, and once more when it is over. */
import type { Clock } from '../core/ports.ts';
import type { Answer, Visit } from './application.ts';
import { exchange } from './exchange.ts';
import type { PlannedEvent } from './plan.ts';
import { deliverUntilDone } from './retry.ts';
import { github, stripe, type Signed } from './signers.ts';
import type { Tally } from './tally.ts';

export interface Storm {
  readonly clock: Clock;
  readonly tally: Tally;
  /** Origins of the gateways, used in turn. */
  readonly gateways: readonly string[];
  readonly secrets: Readonly<Record<PlannedEvent['sender'], string>>;
  readonly copies: number;
  /** Events on their way at the same time. */
  readonly atOnce: number;
  readonly signal: AbortSignal;
}

/** Resolves when every delivery was taken or its sender has given up. */
export async function runStorm(storm: Storm, events: readonly PlannedEvent[]): Promise<void> {
  const queue = events.values();
  const lane = async (): Promise<void> => {
    for (const event of queue) {
      if (storm.signal.aborted) return;
      const copies = Array.from({ length: storm.copies }, (_, n) => deliver(storm, event, n));
      await Promise.all(copies);
      // Senders repeat what they believe was not taken, long after it was.
      await deliver(storm, event, 0);
    }
  };
  await Promise.all(Array.from({ length: storm.atOnce }, lane));
}

async function deliver(storm: Storm, event: PlannedEvent, copy: number): Promise<void> {
  const signed = sign(storm, event);
  const url = `${storm.gateways[copy % storm.gateways.length]!}/webhooks/${event.sender}`;
  storm.tally.delivery();
  const send = async () => {
    const handled = storm.tally.sent(event);
    const reply = await exchange(url, { method: 'POST', ...signed }, { timeoutMs: 10_000 });
    storm.tally.answered(event, reply, handled);
    return reply;
  };
  await deliverUntilDone(storm.clock, send, { retryAfterScale: 0.03, maxTries: 30, signal: storm.signal });
}

function sign({ clock, secrets }: Storm, { id, sender }: PlannedEvent): Signed {
  const body = Buffer.from(JSON.stringify({ id, note: 'déjà vu? 👀' }));
  return sender === 'github' ? github(secrets.github, id, body) : stripe(secrets.stripe, body, clock.wall());
}

/** The application's side: works as the plan says, fails as often as the plan says, then succeeds. */
export function worker(clock: Clock, tally: Tally, events: readonly PlannedEvent[]): (visit: Visit) => Promise<Answer> {
  const plans = new Map(events.map((event) => [event.id, event]));
  return async (visit) => {
    const { id } = JSON.parse(visit.body.toString()) as { id: string };
    const plan = plans.get(id);
    if (plan === undefined) return { status: 404 };
    const before = tally.visited(id);
    await clock.sleep(plan.workMs);
    if (before < plan.failures) return { status: 500, body: 'out of luck\n' };
    tally.handled(id);
    return { status: 200, body: 'done\n' };
  };
}
