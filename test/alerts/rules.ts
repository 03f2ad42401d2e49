/** The alert rules as they lie in the chart, one file each. */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string; readonly runbook_url: string };
}

const rulesFolder = fileURLToPath(new URL('../../charts/hookonce/files/rules/', import.meta.url));

export const ruleFiles: readonly string[] = readdirSync(rulesFolder).map((file) => rulesFolder + file);

export const rules: readonly Rule[] = ruleFiles.flatMap((file) => {
  const { groups } = parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] };
  return groups.flatMap((group) => group.rules);
});
