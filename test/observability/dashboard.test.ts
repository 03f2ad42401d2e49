/** The rules of Grafana's dashboard-linter, and the habits of dashboards that people like. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dashboard as generated } from '../../docs/dashboard/generate.ts';
import { dashboard, panels, text } from './dashboard-file.ts';
import { strangers } from './known-metrics.ts';

/** The variable of the data source, as Grafana writes it. */
const CHOSEN = ['$', '{datasource}'].join('');

test('the dashboard is what docs/dashboard says: node docs/dashboard/generate.ts writes it', () => {
  assert.equal(text, generated());
});

test('it can be found, linked to and shared: a stable uid, tags, one crosshair', () => {
  assert.equal(dashboard.uid, 'hookonce');
  assert.ok(dashboard.tags.includes('hookonce'));
  assert.equal(dashboard.graphTooltip, 1);
});

test('the data source is chosen, and namespace, job, pod and route after it, several of each or all', () => {
  const [source, ...others] = dashboard.templating.list;
  assert.deepEqual([source!['name'], source!['type'], source!['query']], ['datasource', 'datasource', 'prometheus']);
  assert.deepEqual(
    others.map(({ name }) => name),
    ['namespace', 'job', 'pod', 'route'],
  );
  for (const [n, variable] of others.entries()) {
    const { definition, multi, includeAll, allValue, refresh, datasource } = variable;
    assert.deepEqual([multi, includeAll, allValue, refresh], [true, true, '.*', 2]);
    assert.deepEqual(datasource, { type: 'prometheus', uid: CHOSEN });
    for (const before of others.slice(0, n))
      assert.ok(String(definition).includes(`${String(before['name'])}=~"$${String(before['name'])}"`));
  }
});

test('every panel says what it shows, in which unit, of the chosen gateways', () => {
  assert.ok(panels.length > 30);
  for (const { title, description = '', targets = [], fieldConfig, type } of panels) {
    assert.match(title, /^[A-Z]/);
    assert.match(description, /^[A-Z0-9a-z].{15,}\.$/, title);
    assert.ok((fieldConfig?.defaults.unit ?? '') !== '', title);
    assert.ok(targets.length > 0, title);
    if (type === 'timeseries') {
      assert.equal(fieldConfig?.defaults.min, 0, title);
      assert.deepEqual(fieldConfig?.defaults.custom, {
        ...fieldConfig?.defaults.custom,
        showPoints: 'never',
        fillOpacity: 10,
      });
    }
    for (const { expr, datasource, legendFormat } of targets) {
      assert.equal(datasource.uid, CHOSEN, title);
      assert.ok(legendFormat.length > 0, title);
      assert.ok(!/\[\d/.test(expr), `${title}: a fixed range`);
      for (const [, counter] of expr.matchAll(
        /(\w+_total|\w+_bucket|\w+_count)\{[^}]*\}(?!\[\$__(rate_interval|range)\])/g,
      ))
        assert.match(String(counter), /memory_lost|dropped/, `${title}: ${String(counter)} without a rate`);
      for (const [, selector] of expr.matchAll(/\{([^}]*)\}/g))
        assert.match(selector!, /^namespace=~"\$namespace",job=~"\$job",pod=~"\$pod"/, title);
    }
  }
});

test('titles are there once in their row, ids once, and no panel lies over another', () => {
  const all = dashboard.panels.flatMap((panel) => [panel, ...(panel.panels ?? [])]);
  assert.equal(new Set(all.map(({ id }) => id)).size, all.length);
  for (const folded of [dashboard.panels, ...dashboard.panels.map(({ panels: inside = [] }) => inside)]) {
    const taken = new Set<string>();
    for (const { title, gridPos } of folded)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++)
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(x < 24 && !taken.has(`${x},${y}`), title);
          taken.add(`${x},${y}`);
        }
  }
});

test('what it asks for are metrics that a gateway has, by labels and values that they have', () => {
  const asked = panels.flatMap(({ targets = [] }) => targets).concat(dashboard.annotations.list as never[]);
  assert.deepEqual(
    asked.flatMap(({ expr }) => strangers(expr)),
    [],
  );
});
