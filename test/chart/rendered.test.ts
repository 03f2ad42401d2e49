/** Every values file of ci/, with Helm 4 and Helm 3, for every Kubernetes that is supported. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, suite, test } from 'node:test';
import { root } from '../setup/tool.ts';
import { dependencies, generated } from './generate.ts';
import { kubernetesVersions, render, run, the, valuesFiles, type KubeObject, type Rendering } from './helm.ts';
import { containersOf, looseMounts, podsOf, repeatedEntries, restrictedComplaints, type Pods } from './pods.ts';
import { typeComplaints } from './field-check.ts';

interface Case {
  readonly name: string;
  readonly chart: string;
  readonly file: string;
  /** By helm and Kubernetes. */
  readonly renderings: Map<string, Rendering>;
}

const cases: Case[] = ['hookonce', 'hookonce-injector'].flatMap((chart) =>
  valuesFiles(chart).map((file) => ({ name: `${chart} ${file}`, chart, file, renderings: new Map() })),
);

before(async () => {
  for (const { chart, file, renderings } of cases) {
    const versions = kubernetesVersions.filter((version) => chart === 'hookonce' || version >= '1.36');
    await Promise.all(
      (['helm4', 'helm3'] as const).map(async (helm) => {
        for (const kubernetes of versions)
          renderings.set(`${helm} ${kubernetes}`, await render({ helm, chart, file, kubernetes }));
      }),
    );
  }
});

for (const { name, renderings } of cases) {
  test(`${name} is rendered, and the same by every helm for every Kubernetes`, () => {
    const [first] = renderings.values();
    for (const [by, { ok, text, objects }] of renderings) {
      assert.ok(ok, `${by}: ${text}`);
      assert.deepEqual(inOrder(objects), inOrder(first!.objects), by);
      assert.doesNotMatch(text, /\d+e\+\d/);
    }
  });
}

test('no object has a field that Kubernetes does not know, or of another type', async () => {
  assert.equal(await typeComplaints(all()), '');
  const misspelt = structuredClone(the('Deployment', objectsOf('hookonce newcomer-values.yaml')));
  misspelt.spec.template.spec.containers[0].imagePulPolicy = 'Always';
  misspelt.spec.replicas = 'two';
  const complaints = await typeComplaints([misspelt]);
  assert.match(complaints, /imagePulPolicy/);
  assert.match(complaints, /'string' is not assignable to type 'number'/);
});

suite('every pod', () => {
  test('may run where Pod Security is "restricted", with a read-only file system and without a token', () => {
    for (const { spec } of pods()) {
      assert.deepEqual(restrictedComplaints(spec), []);
      assert.equal(spec.automountServiceAccountToken, false);
      for (const { securityContext, resources } of containersOf(spec)) {
        assert.equal(securityContext.readOnlyRootFilesystem, true);
        assert.ok(resources.limits.memory, 'a memory limit, by which the gateway bounds what it buffers');
      }
    }
    assert.equal(restrictedComplaints({ containers: [{ name: 'x' }] }).length, 4);
  });

  test('has nothing twice that server-side apply merges by name, and mounts what it has', () => {
    for (const pod of pods()) {
      assert.deepEqual(repeatedEntries(pod.spec), []);
      assert.deepEqual(looseMounts(pod), []);
    }
    const twice = { containers: [{ name: 'x', env: [{ name: 'A' }, { name: 'A' }] }] };
    assert.deepEqual(repeatedEntries(twice), ['x env: A']);
  });

  test('mounts folders whole: a subPath would never see a change', () => {
    for (const { spec } of pods())
      for (const { volumeMounts } of containersOf(spec))
        for (const mount of volumeMounts) assert.equal(mount.subPath ?? mount.subPathExpr, undefined);
  });
});

test('ports are referred to by number, and selectors select what they are for', () => {
  for (const { name } of cases) {
    const objects = objectsOf(name);
    const labels = objects.flatMap((object) => podsOf(object)).map((pod) => pod.labels);
    // Pods with sidecars are not in this chart; whoever puts the sidecar there gives them this label.
    for (const { metadata } of objects.filter(({ data }) => data?.['config.yaml'] !== undefined))
      labels.push({ 'hookonce.io/config': metadata.name });
    for (const { kind, spec } of objects) {
      const selector = kind === 'Service' ? spec.selector : (spec?.podSelector ?? spec?.selector)?.matchLabels;
      if (kind !== 'ServiceMonitor' && selector !== undefined)
        assert.ok(
          labels.some((pod) => isSubset(selector, pod)),
          `${name} ${kind}: ${JSON.stringify(selector)}`,
        );
      for (const port of kind === 'Service' ? spec.ports : []) assert.equal(typeof port.targetPort, 'number');
      for (const rule of kind === 'NetworkPolicy' ? spec.ingress : [])
        for (const { port } of rule.ports) assert.equal(typeof port, 'number');
    }
  }
});

test('helm lint --strict has nothing to say', async () => {
  const lint = async (helm: 'helm4' | 'helm3', ...args: string[]) => {
    const { ok, text } = await run(helm, ['lint', '--strict', '--kube-version', '1.36.0', ...args]);
    assert.ok(ok && !/WARNING|ERROR/.test(text), text);
  };
  const charts = ['hookonce', 'hookonce-lib', 'hookonce-injector'].map(chartPath);
  await Promise.all([lint('helm4', ...charts), lint('helm3', ...charts)]);
  for (const { chart, file } of cases)
    await lint('helm4', chartPath(chart), '--values', join(chartPath(chart), 'ci', file));
});

test('what is generated is up to date (npm run charts)', () => {
  const files = generated();
  const stale = [...files].filter(([file, text]) => readFileSync(join(root, file), 'utf8') !== text);
  assert.deepEqual(
    stale.map(([file]) => file),
    [],
  );
  assert.deepEqual(
    dependencies().filter((file) => !files.has(file)),
    [],
  );
});

/** HOOKONCE_GOLDEN=write keeps what is rendered now. */
for (const name of [
  'hookonce newcomer-values.yaml',
  'hookonce sidecar-full-values.yaml',
  'hookonce-injector default-values.yaml',
]) {
  test(`${name} is rendered as in its golden file`, () => {
    const file = join(import.meta.dirname, 'golden', name.replace(' ', '-').replace('-values', ''));
    const { text } = cases.find((one) => one.name === name)!.renderings.get('helm4 1.36.0')!;
    if (process.env['HOOKONCE_GOLDEN'] === 'write') {
      mkdirSync(join(file, '..'), { recursive: true });
      writeFileSync(file, text);
    }
    assert.ok(existsSync(file), `${file} is missing`);
    const golden = readFileSync(file, 'utf8').split('\n');
    const line = text.split('\n').findIndex((one, i) => one !== golden[i]);
    assert.equal(text.split('\n')[line], golden[line], `${file}:${line + 1}`);
    assert.equal(text.split('\n').length, golden.length);
  });
}

function objectsOf(name: string): readonly KubeObject[] {
  return [...cases.find((one) => one.name === name)!.renderings.values()][0]!.objects;
}

function all(): KubeObject[] {
  return cases.flatMap(({ name }) => objectsOf(name));
}

function pods(): Pods[] {
  const found = all().flatMap((object) => podsOf(object));
  assert.ok(found.length > 10);
  return found;
}

function inOrder(objects: readonly KubeObject[]): KubeObject[] {
  const key = ({ kind, metadata }: KubeObject) => `${kind} ${metadata.name}`;
  return [...objects].sort((a, b) => key(a).localeCompare(key(b)));
}

function isSubset(selector: Record<string, string>, labels: Record<string, string>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

function chartPath(chart: string): string {
  return join(root, 'charts', chart);
}
