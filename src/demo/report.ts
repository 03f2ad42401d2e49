import type { Totals } from './tally.ts';

/** The closing lines: what was sent, what became of it, and the two numbers that must be 0. */
export function closingTable(totals: Totals, seconds: number, metrics: readonly string[]): string[] {
  const rows: [string, number, string][] = [
    ['events', totals.events, `in ${seconds.toFixed(1)} s`],
    ['sent', totals.sent, 'deliveries, retries among them'],
    ['retried', totals.retried, 'after 500, 503 or a broken connection'],
    ['forwarded', totals.forwarded, 'the application was asked, failures among them'],
    [
      'duplicates stopped',
      totals.duplicates + totals.inProgress,
      `${totals.waited} waited for the first, ${totals.duplicates - totals.waited} done before, ${totals.inProgress} told to come again`,
    ],
    ['turned away', totals.turnedAway, 'no quorum in time: sent again'],
    ['lost', totals.lost, totals.lost === 0 ? '' : 'NOT HANDLED, or acknowledged too early'],
    ['handled twice', totals.twice, totals.twice === 0 ? '' : 'THE APPLICATION DID THE WORK AGAIN'],
  ];
  const table = rows.map(([name, count, note]) =>
    `  ${name.padEnd(20)}${String(count).padStart(7)}  ${note}`.trimEnd(),
  );
  return ['', ...table, '', `Metrics were at ${metrics.join(' and ')}`];
}
