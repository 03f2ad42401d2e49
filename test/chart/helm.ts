/** Renders charts with the real helm, and reads what came out as strictly as a server-side apply does. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { root, runTool } from '../setup/tool.ts';
import { provide, type Program } from './tools.ts';

/** An object of Kubernetes; tests look into whatever they expect in it. */
// oxlint-disable-next-line typescript/no-explicit-any -- its shape is what is being tested
export type KubeObject = any;

export interface Rendering {
  readonly ok: boolean;
  /** What helm printed: the objects, or why there are none. */
  readonly text: string;
  readonly objects: readonly KubeObject[];
}

export interface RenderOptions {
  readonly helm?: 'helm4' | 'helm3';
  /** Below charts/, or an absolute path. */
  readonly chart?: string;
  /** Of the chart's ci folder. */
  readonly file?: string;
  /** As a further values file; null takes a value away. */
  readonly values?: object;
  readonly kubernetes?: string;
  readonly args?: readonly string[];
}

export const kubernetesVersions = ['1.29.0', '1.33.0', '1.36.0', '1.37.0'] as const;

export async function render(options: RenderOptions = {}): Promise<Rendering> {
  const { helm = 'helm4', chart = 'hookonce', file, values, kubernetes = '1.36.0', args = [] } = options;
  const folder = mkdtempSync(join(tmpdir(), 'hookonce-values-'));
  try {
    const files = file === undefined ? [] : [join(root, 'charts', chart, 'ci', file)];
    if (values !== undefined) {
      files.push(join(folder, 'values.yaml'));
      writeFileSync(files.at(-1)!, stringify(values));
    }
    const path = chart.startsWith('/') ? chart : join(root, 'charts', chart);
    const { ok, text } = await run(helm, [
      ...['template', 'orders', path, '--namespace', 'payments', '--kube-version', kubernetes],
      ...files.flatMap((one) => ['--values', one]),
      ...args,
    ]);
    return { ok, text, objects: ok ? parse(text) : [] };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Rendered, or the test fails with what helm said. */
export async function objects(options: RenderOptions = {}): Promise<readonly KubeObject[]> {
  const rendering = await render(options);
  assert.ok(rendering.ok, rendering.text);
  return rendering.objects;
}

/** Standard output, or standard error when it failed. */
export async function run(
  program: Program,
  args: readonly string[],
  cwd = root,
): Promise<{ ok: boolean; text: string }> {
  const { code, stdout, stderr } = await runTool([provide(program), ...args], cwd);
  return code === 0 ? { ok: true, text: stdout } : { ok: false, text: stderr };
}

/** Duplicate names in a mapping, which Helm 3 lets pass and Helm 4's server-side apply refuses, are errors here. */
export function parse(text: string): KubeObject[] {
  return parseAllDocuments(text, { uniqueKeys: true }).flatMap((document) => {
    assert.deepEqual(document.errors, [], text);
    return document.contents === null ? [] : [document.toJS()];
  });
}

export function valuesFiles(chart: string): string[] {
  return readdirSync(join(root, 'charts', chart, 'ci'));
}

export function the(kind: string, from: readonly KubeObject[], name?: string): KubeObject {
  const found = from.filter((one) => one.kind === kind && (name === undefined || one.metadata.name === name));
  assert.equal(
    found.length,
    1,
    `one ${kind} ${name ?? ''} in ${from.map((one) => `${one.kind} ${one.metadata.name}`).join(', ')}`,
  );
  return found[0];
}

/** The gateway's configuration file, as its ConfigMap has it. */
export function configFile(from: readonly KubeObject[]): string {
  return from.find((one) => one.kind === 'ConfigMap' && one.data?.['config.yaml'] !== undefined).data['config.yaml'];
}
