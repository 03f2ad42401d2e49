/** Alert rules and dashboard, as the chart hands them to the operator and to Grafana. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ruleFiles, rules, type Rule } from '../alerts/rules.ts';
import { text } from '../observability/dashboard-file.ts';
import { objects, render, type KubeObject } from './helm.ts';

const enabled = [
  ...['--set', 'prometheusRule.enabled=true', '--set', 'prometheusRule.labels.release=prom'],
  ...['--set', 'dashboard.enabled=true', '--set', 'dashboard.annotations.folder=Webhooks'],
];

const find = (kind: string, name: RegExp, all: readonly KubeObject[]): KubeObject =>
  all.find((one) => one.kind === kind && name.test(one.metadata.name))!;

for (const file of ['gateway-full-values.yaml', 'sidecar-values.yaml']) {
  test(`${file}: the rules and the dashboard as they lie in the chart, found by their labels`, async () => {
    const all = await objects({ file, args: enabled });
    const rule = find('PrometheusRule', /./, all);
    assert.equal(rule.metadata.labels.release, 'prom');
    const groups = rule.spec.groups as { name: string; rules: Rule[] }[];
    assert.equal(groups.length, ruleFiles.length);
    assert.equal(new Set(groups.map(({ name }) => name)).size, groups.length);
    assert.deepEqual(
      groups.flatMap((group) => group.rules),
      rules,
    );
    const dashboard = find('ConfigMap', /-dashboard$/, all);
    assert.equal(dashboard.metadata.labels.grafana_dashboard, '1');
    assert.equal(dashboard.metadata.annotations.folder, 'Webhooks');
    assert.deepEqual(dashboard['data'], { 'hookonce.json': text });
  });
}

test('runbooks of your own, under the same names', async () => {
  const all = await objects({
    file: 'sidecar-values.yaml',
    args: [...enabled, '--set', 'prometheusRule.runbooks=https://wiki.example/hookonce/'],
  });
  for (const { rules: given } of find('PrometheusRule', /./, all).spec.groups as { rules: Rule[] }[])
    for (const { alert, annotations } of given)
      assert.equal(annotations.runbook_url, `https://wiki.example/hookonce/${alert}.md`);
});

test('neither is there unless it is asked for', async () => {
  const { text: rendered } = await render({ file: 'sidecar-values.yaml' });
  assert.doesNotMatch(rendered, /PrometheusRule|grafana_dashboard/);
});

test('the rules are files that a Prometheus without the operator takes as they are', () => {
  for (const file of ruleFiles) assert.match(readFileSync(file, 'utf8'), /^groups:\n/);
});
