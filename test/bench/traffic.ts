/** Deliveries per second: the application alone, behind a plain proxy, and behind Hookonce, in alternating rounds. */
import { cpuSeconds } from './usage.ts';
import type { LoadAnswer, LoadTask } from './load.ts';
import type { ProxyAnswer, ProxyTask } from './proxy.ts';
import type { Stage } from './stage.ts';
import { startWorker, type Worker } from './worker.ts';

export const WAYS = ['direct', 'proxy', 'first', 'duplicate'] as const;
type Way = (typeof WAYS)[number];

/** Per round; of the process that is measured. */
export interface Traffic {
  readonly perSecond: number[];
  readonly cpuSecondsPer1000: number[];
  failed: number;
}

export interface TrafficOptions {
  readonly rounds: number;
  readonly roundMs: number;
  readonly connections: number;
  /** Deliveries before the first round, each way: code that is not compiled yet is slower by an order. */
  readonly warmUp: number;
}

export type Load = Worker<LoadTask, LoadAnswer>;

/** Events that are done before the rounds of duplicates. */
const KNOWN = 1_000;

export async function measureTraffic(
  stage: Stage,
  load: Load,
  { rounds, roundMs, connections, warmUp }: TrafficOptions,
): Promise<Record<Way, Traffic>> {
  await using proxy = startWorker<ProxyTask, ProxyAnswer>(new URL('./proxy.ts', import.meta.url));
  const { port: proxyPort } = await proxy.run({ upstream: `http://127.0.0.1:${stage.applicationPort}` });
  const ports = {
    direct: stage.applicationPort,
    proxy: proxyPort,
    first: stage.gatewayPort,
    duplicate: stage.gatewayPort,
  };
  const pids = {
    direct: stage.application.pid,
    proxy: proxy.pid,
    first: stage.gatewayPid,
    duplicate: stage.gatewayPid,
  };
  const none = (): Traffic => ({ perSecond: [], cpuSecondsPer1000: [], failed: 0 });
  const measured = { direct: none(), proxy: none(), first: none(), duplicate: none() };
  const send = async (
    way: Way,
    task: { readonly prefix: string; readonly ms?: number; readonly deliveries?: number },
  ) =>
    await load.run({
      kind: 'busy',
      port: ports[way],
      connections,
      ...task,
      ...(way === 'duplicate' && { cycle: KNOWN }),
    });

  await send('first', { prefix: 'known', deliveries: KNOWN });
  for (const way of WAYS)
    await send(way, { prefix: way === 'duplicate' ? 'known' : `${way}-warm`, deliveries: warmUp });
  for (let round = 0; round < rounds; round += 1) {
    for (const way of WAYS) {
      const prefix = way === 'duplicate' ? 'known' : `${way}-${round}`;
      const { requests: visitsBefore } = await stage.application.run({});
      const cpuBefore = cpuSeconds(pids[way]);
      const { delivered, failed, ms } = await send(way, { prefix, ms: roundMs });
      const cpu = cpuSeconds(pids[way]) - cpuBefore;
      checkVisits(way, (await stage.application.run({})).requests - visitsBefore, delivered, failed);
      measured[way].perSecond.push((delivered / ms) * 1_000);
      measured[way].cpuSecondsPer1000.push((cpu / delivered) * 1_000);
      measured[way].failed += failed;
    }
  }
  return measured;
}

/** What was answered fast but wrongly is no measurement. A delivery that failed may or may not have reached the application. */
function checkVisits(way: Way, visits: number, delivered: number, failed: number): void {
  const least = way === 'duplicate' ? 0 : delivered;
  if (visits < least || visits > least + failed)
    throw new Error(`${way}: ${delivered} deliveries succeeded, ${failed} failed, the application saw ${visits}`);
}
