import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, test } from 'node:test';
import { stringify } from 'yaml';
import { strangers } from '../observability/known-metrics.ts';
import { CASES } from './cases.ts';
import { ruleFiles, rules } from './rules.ts';

const dir = mkdtempSync(join(tmpdir(), 'hookonce-alerts-'));
after(() => rmSync(dir, { recursive: true }));

/** Of one gateway; a case says what is particular. */
const labelled = (series: string): string => {
  const [, name, labels = ''] = /^(\w+)(?:\{(.*)\})?$/.exec(series)!;
  return `${name}{namespace="shop",job="hookonce",instance="a"${labels === '' ? '' : `,${labels}`}}`;
};

test('promtool tests the rules: each fires when it should, alone, and not when it just should not', () => {
  const file = join(dir, 'cases.yaml');
  const tests = CASES.map(({ name, series, at, firing }) => ({
    name,
    interval: '1m',
    input_series: Object.entries(series).map(([one, values]) => ({ series: labelled(one), values })),
    promql_expr_test: [
      {
        expr: 'count by (alertname) (ALERTS{alertstate="firing"})',
        eval_time: at,
        exp_samples: firing.map((alertname) => ({ labels: `{alertname="${alertname}"}`, value: 1 })),
      },
    ],
  }));
  writeFileSync(file, stringify({ rule_files: ruleFiles, evaluation_interval: '1m', tests }));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', file], { encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
});

test('what the alerts ask for are metrics that a gateway has, by labels and values that they have', () => {
  assert.deepEqual(
    rules.flatMap(({ expr }) => strangers(expr)),
    [],
  );
});

test('every alert has a case in which it fires, and one of silence', () => {
  for (const { alert } of rules) {
    assert.ok(
      CASES.some(({ name }) => name === `${alert} fires`),
      alert,
    );
    assert.ok(
      CASES.some(({ near }) => near === alert),
      alert,
    );
  }
});

test('every alert has a file and a runbook of its own, says what it means, and names its gateways', () => {
  assert.deepEqual(ruleFiles.map((file) => basename(file, '.yaml')).sort(), rules.map(({ alert }) => alert).sort());
  const index = readFileSync(new URL('../../docs/runbooks/README.md', import.meta.url), 'utf8');
  for (const { alert, labels, annotations, expr } of rules) {
    assert.match(alert, /^Hookonce[A-Z][A-Za-z]+$/);
    assert.match(labels.severity, /^(critical|warning|info)$/);
    assert.ok(annotations.summary.length < 100 && annotations.summary.endsWith('.'), alert);
    const whose = alert === 'HookonceMissing' ? /\$labels\.namespace/ : /\$labels\.job/;
    assert.match(annotations.description, whose, alert);
    assert.match(annotations.runbook_url, new RegExp(`/docs/runbooks/${alert}\\.md$`));
    assert.match(expr, alert === 'HookonceMissing' ? /on \(namespace, pod/ : /by \(namespace, job/, alert);
    const runbook = readFileSync(new URL(`../../docs/runbooks/${alert}.md`, import.meta.url), 'utf8');
    for (const part of ['Meaning', 'Impact', 'Diagnosis', 'Mitigation'])
      assert.match(runbook, new RegExp(`^## ${part}$`, 'm'));
    assert.ok(index.includes(`[${alert}](${alert}.md) | ${labels.severity} |`), `${alert} in the index`);
  }
});
