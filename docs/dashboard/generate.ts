/** The Grafana dashboard of the chart, from `panels.ts`: `node docs/dashboard/generate.ts` writes it; a test compares. */
import { writeFileSync } from 'node:fs';
import { ROWS, type Panel, type Row } from './panels.ts';

const datasource = { type: 'prometheus', uid: '${datasource}' };
const HEIGHT = 7;

export function dashboard(): string {
  return `${JSON.stringify(
    {
      uid: 'hookonce',
      title: 'Hookonce',
      description: 'Webhooks through the gateway: whether each is handled once, and what is in the way.',
      tags: ['hookonce', 'webhooks'],
      editable: true,
      // One crosshair over all panels.
      graphTooltip: 1,
      refresh: '30s',
      schemaVersion: 39,
      time: { from: 'now-3h', to: 'now' },
      timezone: 'browser',
      links: [
        {
          type: 'dashboards',
          tags: ['hookonce'],
          title: 'More of Hookonce',
          asDropdown: true,
          includeVars: true,
          keepTime: true,
        },
      ],
      templating: { list: variables() },
      annotations: { list: [starts] },
      panels: layOut(ROWS),
    },
    null,
    2,
  )}\n`;
}

/** From the general to the particular, each asking only for what the ones before leave. */
function variables(): object[] {
  const chosen = 'namespace=~"$namespace",job=~"$job",pod=~"$pod"';
  return [
    { type: 'datasource', name: 'datasource', label: 'Data source', query: 'prometheus', current: {}, hide: 0 },
    labelVariable('namespace', 'Namespace', 'hookonce_build_info'),
    labelVariable('job', 'Job', 'hookonce_build_info{namespace=~"$namespace"}'),
    labelVariable('pod', 'Pod', 'hookonce_build_info{namespace=~"$namespace",job=~"$job"}'),
    labelVariable('route', 'Route', `hookonce_deliveries_total{${chosen}}`),
  ];
}

function labelVariable(name: string, label: string, series: string): object {
  const query = `label_values(${series}, ${name})`;
  return {
    ...{ type: 'query', name, label, datasource, query: { query, refId: name }, definition: query },
    ...{
      refresh: 2,
      sort: 1,
      multi: true,
      includeAll: true,
      allValue: '.*',
      current: { text: 'All', value: '$__all' },
    },
  };
}

/** A line where a gateway has started. */
const starts = {
  name: 'Starts of gateways',
  datasource,
  enable: true,
  iconColor: 'blue',
  expr: 'process_start_time_seconds{namespace=~"$namespace",job=~"$job",pod=~"$pod"} * 1000',
  titleFormat: '{{pod}} started',
  useValueForTime: 'on',
};

/** Left to right, and down when a row is full. */
function layOut(rows: readonly Row[]): object[] {
  let y = 0;
  let id = 0;
  return rows.flatMap((row, index) => {
    const head = {
      type: 'row',
      title: row.title,
      id: (id += 1),
      collapsed: row.folded === true,
      gridPos: { h: 1, w: 24, x: 0, y },
    };
    y += 1;
    let x = 0;
    let height = 0;
    const panels = row.panels.map((panel) => {
      const w = panel.width ?? 8;
      const h = index === 0 ? 4 : HEIGHT;
      if (x + w > 24) [x, y] = [0, y + h];
      const placed = { ...panelOf(panel), id: (id += 1), gridPos: { h, w, x, y } };
      [x, height] = [x + w, h];
      return placed;
    });
    y += height;
    return row.folded === true ? [{ ...head, panels }] : [{ ...head, panels: [] }, ...panels];
  });
}

function panelOf({ kind, title, description, unit, queries, steps, words, stacked }: Panel): object {
  const thresholds = {
    mode: 'absolute',
    steps: (steps ?? [{ from: 0, color: 'green' }]).map(({ from, color }, n) => ({
      color,
      value: n === 0 ? null : from,
    })),
  };
  const mapped = Object.entries(words ?? {}).map(([value, text], index) => [value, { text, index }] as const);
  const mappings = mapped.length === 0 ? [] : [{ type: 'value', options: Object.fromEntries(mapped) }];
  const targets = queries.map(({ expr, legend }, n) => ({
    ...{ datasource, expr, legendFormat: legend, refId: String.fromCharCode(65 + n) },
    ...(kind === 'stat' && { instant: true }),
  }));
  return {
    title,
    description,
    datasource,
    targets,
    ...LOOKS[kind]({ unit, thresholds, mappings }, stacked === true, steps !== undefined),
  };
}

type Look = (defaults: Record<string, unknown>, stacked: boolean, coloured: boolean) => object;

const LOOKS: Record<Panel['kind'], Look> = {
  stat: (defaults, _stacked, coloured) => ({
    type: 'stat',
    fieldConfig: { defaults: { ...defaults, noValue: '0' }, overrides: [] },
    options: {
      colorMode: coloured ? 'background' : 'value',
      graphMode: 'none',
      reduceOptions: { calcs: ['lastNotNull'] },
    },
  }),
  lines: (defaults, stacked) => ({
    type: 'timeseries',
    fieldConfig: {
      defaults: {
        ...{ ...defaults, min: 0 },
        custom: { showPoints: 'never', fillOpacity: 10, lineWidth: 1, stacking: { mode: stacked ? 'normal' : 'none' } },
      },
      overrides: [],
    },
    options: { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  }),
  states: (defaults) => ({
    type: 'state-timeline',
    fieldConfig: { defaults: { ...defaults, custom: { fillOpacity: 70, lineWidth: 0 } }, overrides: [] },
    options: { mergeValues: true, showValue: 'never', legend: { displayMode: 'list', placement: 'bottom' } },
  }),
};

if (import.meta.main)
  writeFileSync(new URL('../../charts/hookonce/files/dashboards/hookonce.json', import.meta.url), dashboard());
