/** Senders that deliver until they are heard, with copies at the other gateway, and old events that come again. */
import { systemClock as clock } from '../../src/clock.ts';
import { deliverUntilDone } from '../../src/demo/retry.ts';
import type { Reply } from '../../src/demo/exchange.ts';
import type { Random } from '../simulation/random.ts';
import { post } from '../support/cluster.ts';
import { github, outcome } from '../support/deliveries.ts';
import { GATEWAYS, type World } from './world.ts';

const SENDERS = 6;
const patience = { retryAfterScale: 0.2, maxTries: 200 };

/** Ends with its scope, whatever has become of the events then. */
export interface Traffic extends AsyncDisposable {
  /** No new events; resolves when every event that was begun is taken, with those that were not. */
  end(): Promise<string[]>;
}

export function startTraffic(world: World, random: Random): Traffic {
  const stop = new AbortController();
  const giveUp = new AbortController();
  const taken: string[] = [];
  const lost: string[] = [];
  let events = 0;

  const send = async (event: string, gateway: number): Promise<Reply> => {
    const startedMs = clock.now();
    const reply = await post(world.gateways[gateway]!, '/github', github(event)).catch(
      (error: unknown) => error as Error,
    );
    const answered = reply instanceof Error ? undefined : reply;
    world.history.exchanges.push({
      ...{ event, gateway, startedMs, endedMs: clock.now() },
      ...{ status: answered?.status, outcome: answered && outcome(answered) },
    });
    if (reply instanceof Error) throw reply;
    return reply;
  };
  const deliver = async (event: string): Promise<void> => {
    let tries = random.integer(0, 1);
    const { ok } = await deliverUntilDone(clock, async () => await send(event, (tries += 1) % GATEWAYS), {
      ...patience,
      signal: giveUp.signal,
    });
    if (ok) taken.push(event);
    else lost.push(event);
  };
  const sender = async (): Promise<void> => {
    while (!stop.signal.aborted) {
      const old = taken.length > 0 && random.chance(0.3);
      const event = old ? random.pick(taken) : `event-${(events += 1)}`;
      await Promise.all(random.chance(0.3) ? [deliver(event), deliver(event)] : [deliver(event)]);
      await clock.sleep(random.between(0, 100), stop.signal);
    }
  };
  const senders = Array.from({ length: SENDERS }, sender);
  return {
    async end() {
      stop.abort();
      await Promise.all(senders);
      return lost;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      giveUp.abort();
      await Promise.all(senders);
    },
  };
}
