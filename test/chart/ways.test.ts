/** The five ways of putting the gateway in front: each has the same container, and the same configuration. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parse as parseYaml, stringify } from 'yaml';
import { LIVE } from '../../src/config/live.ts';
import { root } from '../setup/tool.ts';
import { configFile, objects, parse, run, the, type KubeObject } from './helm.ts';
import { ordersChart, sidecarOf, templateOf, type OrdersChart } from './orders-chart.ts';
import { podsOf, repeatedEntries, restrictedComplaints } from './pods.ts';
import { typeComplaints } from './field-check.ts';

let chart: OrdersChart;
let library: readonly KubeObject[] = [];

before(async () => {
  chart = await ordersChart();
  library = await objects({ chart: chart.path });
});
after(() => chart[Symbol.dispose]());

const asContainer = ({ restartPolicy: _, ...container }: KubeObject) => container;

test('library chart: the application has the sidecar, its volumes and its label; Helm 3 agrees', async () => {
  const { spec, metadata } = templateOf(library, 'orders');
  assert.deepEqual(
    spec.initContainers.map(({ name }: KubeObject) => name),
    ['hookonce'],
  );
  assert.equal(sidecarOf(spec).restartPolicy, 'Always');
  assert.equal(metadata.labels['hookonce.io/config'], the('ConfigMap', library).metadata.name);
  assert.equal(the('Service', library).spec.selector['hookonce.io/config'], metadata.labels['hookonce.io/config']);
  assert.match(metadata.annotations['checksum/hookonce-config'], /^[0-9a-f]{64}$/);
  assert.equal(parseYaml(configFile(library)).service, 'payments/orders-hookonce');
  assert.deepEqual(spec.volumes[1].projected.sources, [{ secret: { name: 'orders-webhooks' } }]);
  assert.deepEqual(restrictedComplaints(spec), []);
  assert.equal(await typeComplaints(library), '');
  assert.deepEqual(await objects({ helm: 'helm3', chart: chart.path }), library);
});

test('library chart: pods are started anew for those settings that gateways do not take up while they run', async () => {
  const changed = async (...paths: string[]) => {
    const args = paths.flatMap((path) => ['--set', `hookonce.config.${path}=changed`]);
    const rendered = await objects({ chart: chart.path, args });
    assert.notDeepEqual(configFile(rendered), configFile(library));
    return templateOf(rendered, 'orders').metadata.annotations;
  };
  const { annotations } = templateOf(library, 'orders').metadata;
  assert.deepEqual(await changed(...LIVE), annotations);
  for (const path of ['upstream.url', 'claims.lockTtl', 'listen.port', 'redis.timeout', 'service'])
    assert.notDeepEqual(await changed(path), annotations, path);
});

test('library chart: installed by itself it is refused', async () => {
  const { ok, text } = await run('helm4', ['template', 'x', join(root, 'charts/hookonce-lib')]);
  assert.ok(!ok && text.includes('library charts are not installable'), text);
});

test('gateway mode has the container of the library chart', async () => {
  const gateway = await objects({ file: 'newcomer-values.yaml' });
  const [container] = templateOf(gateway, 'orders-hookonce').spec.containers;
  assert.deepEqual(container, asContainer(sidecarOf(templateOf(library, 'orders').spec)));
});

test('what charts/hookonce says in values.yaml are the defaults of the library chart', () => {
  const text = readFileSync(join(root, 'charts/hookonce-lib/templates/_values.tpl'), 'utf8');
  const defaults = parseYaml(/define "hookonce-lib.defaults" -}}\n(.*?)\n{{- end }}/s.exec(text)![1]!);
  const values = parseYaml(readFileSync(join(root, 'charts/hookonce/values.yaml'), 'utf8'));
  const within = (part: KubeObject, whole: KubeObject, path: string): void => {
    for (const [key, value] of Object.entries(part)) {
      if (typeof value === 'object' && !Array.isArray(value)) within(value as KubeObject, whole[key], `${path}.${key}`);
      else assert.deepEqual(whole[key], value, `${path}.${key}`);
    }
  };
  within({ ...defaults, config: {} }, values, 'values');
});

test('charts, templates and program have one version', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const chart of ['hookonce', 'hookonce-lib', 'hookonce-injector']) {
    const said = parseYaml(readFileSync(join(root, 'charts', chart, 'Chart.yaml'), 'utf8'));
    assert.deepEqual([said.version, said.appVersion], [version, version], chart);
    for (const dependency of said.dependencies ?? []) assert.equal(dependency.version, version);
  }
  assert.equal(sidecarOf(templateOf(library, 'orders').spec).image, `ghcr.io/hookonce/hookonce:${version}`);
});

test('kustomize: the overlay gives the sidecar to the application and to nobody else', async () => {
  const { ok, text } = await run('kubectl', ['kustomize', join(root, 'k8s/overlays/orders')]);
  assert.ok(ok, text);
  const built = parse(text);
  assert.equal(await typeComplaints(built), '');
  const { spec, metadata } = templateOf(built, 'orders');
  assert.deepEqual(sidecarOf(spec), sidecarOf(templateOf(library, 'orders').spec));
  assert.equal(
    metadata.labels['hookonce.io/config'],
    the('Service', built, 'hookonce').spec.selector['hookonce.io/config'],
  );
  assert.deepEqual(
    spec.containers.map(({ name }: KubeObject) => name),
    ['orders'],
  );
  assert.equal(the('StatefulSet', built).spec.template.spec.initContainers, undefined);
  for (const pod of built.flatMap((object) => podsOf(object))) {
    assert.deepEqual(restrictedComplaints(pod.spec), []);
    assert.deepEqual(repeatedEntries(pod.spec), []);
  }
  // The ConfigMap's and the Secret's real names, which change with their content.
  const [config, secrets] = ['hookonce-config', 'hookonce-secrets'].map((name) =>
    spec.volumes.find((volume: KubeObject) => volume.name === name),
  );
  assert.match(the('ConfigMap', built, config.configMap.name).data['config.yaml'], /service: orders\/orders/);
  the('Secret', built, secrets.projected.sources[0].secret.name);
});

test('kubectl patch: the same container', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hookonce-patch-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const bare = { containers: [{ name: 'orders', image: 'x' }] };
  const deployment = {
    ...the('Deployment', library),
    spec: {
      ...the('Deployment', library).spec,
      template: { metadata: { labels: { app: 'orders' } }, spec: bare },
    },
  };
  writeFileSync(join(folder, 'deployment.yaml'), stringify(deployment));
  const { ok, text } = await run('kubectl', [
    'patch',
    '--local',
    '-o',
    'yaml',
    '-f',
    join(folder, 'deployment.yaml'),
    '--patch-file',
    join(root, 'k8s/patch.yaml'),
  ]);
  assert.ok(ok, text);
  const { spec, metadata } = parse(text)[0].spec.template;
  assert.deepEqual(sidecarOf(spec), sidecarOf(templateOf(library, 'orders').spec));
  assert.deepEqual(metadata.labels, { app: 'orders', 'hookonce.io/config': 'hookonce' });
  assert.deepEqual(spec.containers, bare.containers);
});
