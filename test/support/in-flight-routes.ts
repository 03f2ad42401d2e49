/** Routes of one sender that differ in what happens to copies in flight. */
import { until } from '../../src/demo/until.ts';
import { systemClock } from '../../src/clock.ts';
import type { Gateway } from '../../src/demo/gateway.ts';
import { sum } from './metrics.ts';

const route = (name: string, inFlight: Readonly<Record<string, unknown>>) => ({
  ...{ name, path: `/${name}`, sender: 'github', secrets: [{ file: './github.secret' }], inFlight },
});

export const inFlightRoutes = [
  // The longest wait that this sender's time limit leaves: a busy machine is no reason to give up.
  route('wait', { policy: 'wait', wait: '9s' }),
  route('brief', { policy: 'wait', wait: '700ms' }),
  route('reject', { policy: 'reject' }),
  route('accept', { policy: 'accept' }),
];

/** Resolves when so many copies wait on a route of these gateways. */
export async function copiesWaiting(gateways: readonly Gateway[], route: string, count: number): Promise<void> {
  await until(systemClock, `${count} copies that wait`, async () => {
    const pages = await Promise.all(gateways.map((gateway) => gateway.metrics()));
    return sum(pages, 'hookonce_waiting', { route }) === count ? true : undefined;
  });
}
