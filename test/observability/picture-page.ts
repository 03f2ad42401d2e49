/**
 * A page that draws panels of the dashboard from what a real Prometheus answers to their queries. It is no Grafana, and
 * says so; what it draws are the dashboard's own panels, queries and units.
 */
import type { GrafanaPanel, Target } from './dashboard-file.ts';
import type { Series } from './prometheus.ts';

export interface Drawn {
  readonly panel: GrafanaPanel;
  readonly answers: readonly { readonly target: Target; readonly series: readonly Series[] }[];
}

const UNIT = 30;
const WIDTH = 1440;
const COLUMN = WIDTH / 24;
const COLORS = [
  '#73bf69',
  '#f2cc0c',
  '#5794f2',
  '#ff9830',
  '#f2495c',
  '#b877d9',
  '#8ab8ff',
  '#ffa6b0',
  '#96d98d',
  '#ffb357',
];
/** What is there only with 0 is drawn last, and named only where there is room. */
const NAMED = 6;

export function page(drawn: readonly Drawn[], rows: readonly GrafanaPanel[], caption: string): string {
  const top = Math.min(...rows.map(({ gridPos }) => gridPos.y));
  const place = ({ x, y, w, h }: GrafanaPanel['gridPos']): string =>
    `left:${x * COLUMN}px;top:${(y - top) * UNIT}px;width:${w * COLUMN - 8}px;height:${h * UNIT - 8}px`;
  const height =
    Math.max(...[...rows, ...drawn.map(({ panel }) => panel)].map(({ gridPos: g }) => g.y + g.h - top)) * UNIT;
  return `<!doctype html><meta charset="utf-8"><style>
body{margin:8px;background:#111217;color:#ccccdc;font:12px system-ui,sans-serif;width:${WIDTH}px}
main{position:relative;height:${height}px}section,h2{position:absolute;box-sizing:border-box;margin:0}
section{background:#181b1f;border:1px solid #2c3235;border-radius:2px;padding:6px 8px;overflow:hidden}
h2{font-size:15px;font-weight:500;padding-top:6px}h3{font-size:12px;font-weight:500;margin:0 0 2px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.stat{display:flex;gap:20px;justify-content:center;align-items:center;height:70%;font-size:30px;font-weight:600;border-radius:2px}
.stat small{display:block;font-size:11px;font-weight:400;text-align:center}
.legend{white-space:nowrap;overflow:hidden;font-size:11px}.legend i{display:inline-block;width:10px;height:3px;margin:0 4px 3px 10px}
text{fill:#8e8e9b;font-size:10px}footer{color:#8e8e9b;padding-top:4px}
</style><main>${rows.map(({ title, gridPos }) => `<h2 style="${place(gridPos)}">${escape(title)}</h2>`).join('')}${drawn
    .map(
      (one) =>
        `<section data-panel="${one.panel.id}" style="${place(one.panel.gridPos)}"><h3>${escape(one.panel.title)}</h3>${body(one)}</section>`,
    )
    .join('')}</main><footer>${escape(caption)}</footer>`;
}

function body({ panel, answers }: Drawn): string {
  const named = answers.flatMap(({ target, series }) =>
    series.map(({ metric, values }) => ({
      name: nameOf(target, metric),
      values: values.filter(([, value]) => !Number.isNaN(value)),
    })),
  );
  switch (panel.type) {
    case 'stat':
      return stat(panel, named);
    case 'state-timeline':
      return states(panel, named);
    default:
      return lines(panel, named);
  }
}

interface Named {
  readonly name: string;
  readonly values: readonly (readonly [number, number])[];
}

function stat(panel: GrafanaPanel, named: readonly Named[]): string {
  const values = named.map(({ name, values: of }) => {
    const value = of.at(-1)?.[1] ?? 0;
    return {
      name,
      text: wordFor(panel, value) ?? format(value, panel.fieldConfig?.defaults.unit),
      color: stepFor(panel, value),
    };
  });
  const background = isColoured(panel) ? `background:${values.map(({ color }) => color).sort()[0]}` : 'color:#73bf69';
  const several = values.length > 1;
  return `<div class="stat" style="${background}">${values
    .map(({ name, text }) => `<div>${escape(text)}${several ? `<small>${escape(name)}</small>` : ''}</div>`)
    .join('')}</div>`;
}

/** Steps as colours, in the order of what is worse. */
const HUES: Readonly<Record<string, string>> = { red: '#c4162a', orange: '#e0752d', green: '#37872d' };

interface Defaults {
  readonly unit?: string;
  readonly thresholds?: { readonly steps: readonly { readonly color: string; readonly value: number | null }[] };
  readonly mappings?: readonly { readonly options: Readonly<Record<string, { readonly text: string }>> }[];
  readonly custom?: { readonly stacking?: { readonly mode: string } };
}
const defaultsOf = (panel: GrafanaPanel): Defaults => panel.fieldConfig?.defaults ?? {};
const isColoured = (panel: GrafanaPanel): boolean => (defaultsOf(panel).thresholds?.steps.length ?? 0) > 1;
const wordFor = (panel: GrafanaPanel, value: number): string | undefined =>
  defaultsOf(panel).mappings?.[0]?.options[value]?.text;
function stepFor(panel: GrafanaPanel, value: number): string {
  const reached = defaultsOf(panel).thresholds?.steps.filter((step) => step.value === null || value >= step.value);
  return HUES[reached?.at(-1)?.color ?? 'green']!;
}

function frame(
  panel: GrafanaPanel,
  named: readonly Named[],
): { w: number; h: number; x: (at: number) => number; from: number; to: number } {
  const { w, h } = panel.gridPos;
  const times = named.flatMap(({ values }) => values.map(([at]) => at));
  const [from, to] = [Math.min(...times), Math.max(...times)];
  const [wide, high] = [w * COLUMN - 26, h * UNIT - 74];
  return { w: wide, h: high, from, to, x: (at) => 44 + ((at - from) / (to - from || 1)) * (wide - 50) };
}

function lines(panel: GrafanaPanel, given: readonly Named[]): string {
  const most = ({ values }: Named): number => Math.max(0, ...values.map(([, value]) => value));
  const named = given.toSorted((a, b) => most(b) - most(a));
  const stacked = defaultsOf(panel).custom?.stacking?.mode === 'normal';
  const { w, h, x, from, to } = frame(panel, named);
  const below = new Map<number, number>();
  const layers = named.map(({ values }) =>
    values.map(([at, value]) => {
      const base = stacked ? (below.get(at) ?? 0) : 0;
      below.set(at, base + value);
      return { at, base, value: base + value };
    }),
  );
  const high = roundUp(Math.max(...layers.flat().map(({ value }) => value), 0));
  const y = (value: number): number => h - 16 - (value / high) * (h - 24);
  const point = (at: number, value: number): string => `${x(at).toFixed(1)},${y(value).toFixed(1)}`;
  const drawn = layers
    .map((layer, n) => {
      if (layer.length === 0) return '';
      const color = COLORS[n % COLORS.length];
      const over = layer.map(({ at, value }) => point(at, value)).join(' ');
      const under = layer
        .toReversed()
        .map(({ at, base }) => point(at, base))
        .join(' ');
      return `<polygon points="${over} ${under}" fill="${color}" fill-opacity="${stacked ? 0.5 : 0.1}"/><polyline points="${over}" fill="none" stroke="${color}" stroke-width="1.3"/>`;
    })
    .join('');
  const marks = [0, 0.5, 1].map((part) => {
    const value = high * part;
    return `<line x1="44" x2="${w - 6}" y1="${y(value)}" y2="${y(value)}" stroke="#2c3235"/><text x="40" y="${y(value) + 3}" text-anchor="end">${format(value, panel.fieldConfig?.defaults.unit)}</text>`;
  });
  const times = [0, 0.5, 1].map((part) => {
    const at = from + (to - from) * part;
    return `<text x="${x(at)}" y="${h - 2}" text-anchor="${part === 0 ? 'start' : part === 1 ? 'end' : 'middle'}">${clockTime(at)}</text>`;
  });
  const legend = named
    .slice(0, NAMED)
    .map(({ name }, n) => `<i style="background:${COLORS[n % COLORS.length]}"></i>${escape(name)}`);
  const more = named.length > NAMED ? `<i></i>and ${named.length - NAMED} more` : '';
  return `<svg width="${w}" height="${h}">${marks.join('')}${times.join('')}${drawn}</svg><div class="legend">${legend.join('')}${more}</div>`;
}

/** To a number that reads well on an axis. */
function roundUp(value: number): number {
  if (value === 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 8, 10].find((step) => step * power >= value * 1.02)! * power || power * 20;
}

function states(panel: GrafanaPanel, named: readonly Named[]): string {
  const { w, h, x, to } = frame(panel, named);
  const band = (h - 20) / Math.max(1, named.length);
  const bars = named.map(({ name, values }, n) => {
    const pieces = values.map(([at, value], i) => {
      const until = values[i + 1]?.[0] ?? to;
      return `<rect x="${x(at)}" y="${n * band + 4}" width="${Math.max(0, x(until) - x(at)) + 0.5}" height="${band - 10}" fill="${stepFor(panel, value)}"/>`;
    });
    return `${pieces.join('')}<text x="50" y="${n * band + band / 2 + 3}" style="fill:#fff">${escape(name)}</text>`;
  });
  const words = Object.entries(defaultsOf(panel).mappings?.[0]?.options ?? {});
  const legend = words.map(
    ([value, { text }]) => `<i style="background:${stepFor(panel, Number(value))}"></i>${escape(text)}`,
  );
  return `<svg width="${w}" height="${h}">${bars.join('')}</svg><div class="legend">${legend.join('')}</div>`;
}

const nameOf = ({ legendFormat }: Target, metric: Series['metric']): string =>
  legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? '');

function format(value: number, unit = 'short'): string {
  const digits = (n: number): string =>
    n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : Number(n.toPrecision(2)).toString();
  switch (unit) {
    case 'percentunit':
      return `${digits(value * 100)}%`;
    case 's':
      return value < 1 ? `${digits(value * 1000)} ms` : `${digits(value)} s`;
    case 'bytes':
      return `${digits(value / 1024 ** 2)} MiB`;
    case 'reqps':
    case 'ops':
      return `${digits(value)}/s`;
    default:
      return Number.isInteger(value) ? String(value) : digits(value);
  }
}

const time = new Intl.DateTimeFormat('sv-SE', { timeZone: 'UTC', timeStyle: 'medium' });
const clockTime = (seconds: number): string => time.format(seconds * 1000);
const escape = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
