/** The dashboard as it lies in the chart, and what its panels ask. */
import { readFileSync } from 'node:fs';

export interface Target {
  readonly expr: string;
  readonly legendFormat: string;
  readonly datasource: { readonly uid: string };
}

export interface GrafanaPanel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly targets?: readonly Target[];
  readonly panels?: readonly GrafanaPanel[];
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly fieldConfig?: {
    readonly defaults: { readonly unit?: string; readonly min?: number; readonly custom?: object };
  };
}

export interface Dashboard {
  readonly uid: string;
  readonly title: string;
  readonly tags: readonly string[];
  readonly graphTooltip: number;
  readonly templating: { readonly list: readonly Readonly<Record<string, unknown>>[] };
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
  readonly panels: readonly GrafanaPanel[];
}

const file = new URL('../../charts/hookonce/files/dashboards/hookonce.json', import.meta.url);
export const text = readFileSync(file, 'utf8');
export const dashboard = JSON.parse(text) as Dashboard;

/** Rows opened. */
export const panels: readonly GrafanaPanel[] = dashboard.panels
  .flatMap((panel) => [panel, ...(panel.panels ?? [])])
  .filter(({ type }) => type !== 'row');

/** As Grafana asks, with everything chosen. */
export function asked(expr: string, interval: string, range: string): string {
  return expr
    .replaceAll('$__rate_interval', interval)
    .replaceAll('$__range', range)
    .replaceAll(/\$(namespace|job|pod|route)/g, '.*');
}
