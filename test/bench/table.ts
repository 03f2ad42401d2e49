/** Results for people. */
import { median } from './figures.ts';
import type { Measured } from './bench.ts';
import { verdict, type Result } from './targets.ts';

type Row = readonly string[];

export function resultTable(all: readonly Result[]): string {
  const rows = all.map((result): Row => {
    const { name, value, unit, spread, target } = result;
    const number = (given: number): string => shown(given, unit);
    const wanted = target === undefined ? '' : 'least' in target ? `≥ ${target.least}` : `≤ ${target.most}`;
    const range = spread === undefined ? '' : `${number(spread[0])} – ${number(spread[1])}`;
    return [name, `${number(value)} ${unit === 'times' ? '×' : unit}`, range, wanted, verdict(result)];
  });
  return table(['', 'measured', 'rounds', 'target', ''], rows);
}

/** Rates mean something beside one another only: the machine and what else it does are in every one of them. */
export function rateTable({ traffic, pairs }: Measured): string {
  const rows = [
    ...Object.entries(traffic).map(([name, { perSecond, cpuSecondsPer1000, failed }]): Row => {
      const cpu = median(cpuSecondsPer1000).toFixed(3);
      return [name, Math.round(median(perSecond)).toString(), cpu, failed.toString()];
    }),
    ...Object.entries(pairs).map(([name, perSecond]): Row => [name, Math.round(median(perSecond)).toString(), '', '']),
  ];
  return table(['', 'per second', 'CPU-seconds per 1,000', 'failed'], rows);
}

function shown(value: number, unit: Result['unit']): string {
  switch (unit) {
    case 'times':
    case 'ms':
      return value.toFixed(2);
    case 's':
      return value.toFixed(3);
    case 'MB':
    case 'bytes':
      return value.toFixed(0);
  }
}

/** Markdown, in columns. */
function table(head: Row, rows: readonly Row[]): string {
  const all = [head, head.map(() => ''), ...rows];
  const widths = head.map((_, column) => Math.max(3, ...all.map((row) => row[column]!.length)));
  return all
    .map((row, at) => row.map((cell, column) => cell.padEnd(widths[column]!, at === 1 ? '-' : ' ')))
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n');
}
