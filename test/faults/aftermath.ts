/** What must be as before when the faults are over: what a gateway holds, and what it says that it did. */
import assert from 'node:assert/strict';
import { systemClock as clock } from '../../src/clock.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import { until } from '../../src/demo/until.ts';
import { sum } from '../support/metrics.ts';
import type { Exchange } from './history.ts';
import type { World } from './world.ts';

export interface Resources {
  readonly descriptors: number;
  readonly timers: number;
}

export async function resourcesOf(gateway: Gateway): Promise<Resources> {
  const page = [await gateway.metrics()];
  return {
    descriptors: sum(page, 'process_open_fds'),
    timers: sum(page, 'nodejs_active_resources', { type: 'Timeout' }),
  };
}

/** The admin port's connection, and a connection or timer that is just being replaced. */
const SLACK = 6;

/** Resolves when nothing is held any more that was not held before: requests, bodies, descriptors, timers. */
export async function backTo(gateway: Gateway, before: Resources): Promise<void> {
  const idle = ['hookonce_in_flight', 'hookonce_buffered_bytes', 'hookonce_completions_pending'];
  await until(clock, 'everything that was held to be let go', async () => {
    const page = [await gateway.metrics()];
    const busy = idle.filter((name) => sum(page, name) !== 0);
    const now = await resourcesOf(gateway);
    const over = [now.descriptors - before.descriptors, now.timers - before.timers].some((more) => more > SLACK);
    if (busy.length === 0 && !over) return true;
    throw new Error(`${busy.join()} ${JSON.stringify({ before, now })}`);
  });
}

/** Its metrics count what senders were answered, outcome by outcome, unless it was killed in between. */
export async function countedAsAnswered(world: World, at: number): Promise<void> {
  const { excuses, exchanges } = world.history;
  if (excuses.some(({ kind, gateway }) => kind === 'dead' && gateway === at)) return;
  const own = exchanges.filter(({ gateway, status }) => gateway === at && status !== undefined);
  const page = [await world.gateways[at]!.metrics()];
  for (const [outcome, answered] of Object.entries(Object.groupBy(own, outcomeOf))) {
    const counted = sum(page, 'hookonce_deliveries_total', { route: 'github', outcome });
    assert.equal(counted, answered!.length, `gateway ${at}: ${outcome}`);
  }
}

/** Of what the application answered, its own status tells. */
function outcomeOf({ outcome, status }: Exchange): string {
  return outcome ?? (status! < 300 ? 'delivered' : 'refused');
}
