/** Reading what Prometheus would read. */

/** Sum of a metric's samples that carry all of `labels`, over several pages; 0 where there is none. */
export function sum(pages: readonly string[], name: string, labels: Readonly<Record<string, string>> = {}): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  return pages
    .flatMap((page) => page.split('\n'))
    .filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
    .filter((line) => wanted.every((pair) => line.includes(`{${pair}`) || line.includes(`,${pair}`)))
    .reduce((total, line) => total + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}
