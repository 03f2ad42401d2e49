/** What was measured, held against what is aimed at. */
import { median, quantile, ratios } from './figures.ts';
import type { Measured } from './bench.ts';

export interface Result {
  readonly name: string;
  readonly value: number;
  readonly unit: 'times' | 'ms' | 's' | 'MB' | 'bytes';
  /** Least and most over the rounds, where there were rounds. */
  readonly spread?: readonly [number, number];
  readonly target?: { readonly least: number } | { readonly most: number };
}

export function results({ traffic, pairs, latency, memory }: Measured): Result[] {
  const times = (name: string, values: readonly number[], least?: number): Result => ({
    ...{ name, value: median(values), unit: 'times', spread: [Math.min(...values), Math.max(...values)] },
    ...(least !== undefined && { target: { least } }),
  });
  const { direct, proxy, first, duplicate } = traffic;
  const redlock = pairs['redlock'];
  const cpu = first.cpuSecondsPer1000;
  const { gateway: with_, direct: without } = latency;
  return [
    times('first deliveries, of @fastify/http-proxy', ratios(first.perSecond, proxy.perSecond), 1.2),
    times('duplicates, of @fastify/http-proxy', ratios(duplicate.perSecond, proxy.perSecond), 3),
    times('@fastify/http-proxy, of direct', ratios(proxy.perSecond, direct.perSecond)),
    times('claim + complete, of plain redlock', ratios(pairs['claims'], redlock), 2),
    times('redlock with autopipelining, of plain redlock', ratios(pairs['redlock, autopipelining'], redlock)),
    ...([
      {
        name: 'added latency at 100/s, median',
        value: with_.median - without.median,
        unit: 'ms',
        target: { most: 0.8 },
      },
      { name: 'added latency at 100/s, p99', value: with_.p99 - without.p99, unit: 'ms', target: { most: 3 } },
      {
        ...{ name: 'CPU-seconds per 1,000 first deliveries', value: median(cpu), unit: 's' },
        ...{ spread: [Math.min(...cpu), Math.max(...cpu)], target: { most: 0.25 } },
      },
      { name: 'resident memory, idle', value: memory.idleMB, unit: 'MB', target: { most: 90 } },
      {
        ...{
          name: `resident memory after ${memory.deliveries.toLocaleString('en')} deliveries`,
          value: memory.loadedMB,
        },
        ...{ unit: 'MB', target: { most: 140 } },
      },
      {
        name: 'memory of a voter per done event',
        value: quantile(memory.bytesPerEvent, 1),
        unit: 'bytes',
        target: { most: 200 },
      },
    ] satisfies Result[]),
  ];
}

/** `met`, or by how much it was missed, in per cent of the target. */
export function verdict({ value, target }: Result): string {
  if (target === undefined) return '';
  const [limit, missed] = 'least' in target ? [target.least, target.least - value] : [target.most, value - target.most];
  return missed <= 0 ? 'met' : `missed by ${Math.ceil((missed / limit) * 100)} %`;
}
