/** Faults of other charts, each by the number of its report: they must not happen here. */
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from '../setup/tool.ts';
import { configFile, objects, render, the, type KubeObject } from './helm.ts';
import { podsOf, secretsOf } from './pods.ts';

const newcomer = { file: 'newcomer-values.yaml' } as const;

test('B122: existing Secrets are used everywhere, under keys of your choice, and none of our own is asked for', async () => {
  const rendered = await objects({
    file: 'gateway-full-values.yaml',
    values: {
      extraEnv: [],
      extraEnvFrom: [],
      secrets: { existingSecret: 'my-sec', items: [{ key: 'live', path: 'stripe' }] },
      redis: {
        auth: { existingSecret: 'my-sec', passwordKey: 'redis' },
        tls: { existingSecret: 'my-sec', caKey: 'ca', certKey: 'cert', keyKey: 'key' },
      },
    },
  });
  const names = rendered.flatMap((object) => podsOf(object)).flatMap(({ spec }) => secretsOf(spec));
  assert.ok(names.length >= 8, 'gateway, helm test and redis');
  assert.deepEqual([...new Set(names)], ['my-sec']);
  assert.doesNotMatch(JSON.stringify(rendered), /payments-webhooks-secrets/);
  assert.deepEqual(
    rendered.filter(({ kind }) => kind === 'Secret'),
    [],
  );

  const volume = the('Deployment', rendered).spec.template.spec.volumes.find(
    ({ name }: KubeObject) => name === 'hookonce-secrets',
  );
  const keys = volume.projected.sources.map(({ secret }: KubeObject) => secret.items);
  assert.deepEqual(keys, [
    [{ key: 'live', path: 'stripe' }],
    [{ key: 'redis', path: 'redis-password' }],
    [{ key: 'ca', path: 'redis-ca.crt' }],
  ]);
});

test('B122: by default the Secret may be missing, so that a route without signature needs none', async () => {
  const sidecarless = await objects({ ...newcomer, values: { secrets: { existingSecret: '' } } });
  const { spec } = the('Deployment', sidecarless).spec.template;
  const { secret } = spec.volumes.find(({ name }: KubeObject) => name === 'hookonce-secrets').projected.sources[0];
  assert.deepEqual(secret, { name: 'orders-hookonce-secrets', optional: true });
});

test('B124: a new version changes nothing that cannot be changed', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'hookonce-next-'));
  t.after(() => rmSync(folder, { recursive: true }));
  cpSync(join(root, 'charts/hookonce'), folder, { recursive: true });
  const chart = readFileSync(join(folder, 'Chart.yaml'), 'utf8');
  writeFileSync(
    join(folder, 'Chart.yaml'),
    chart.replace('\nversion: 0.1.0', '\nversion: 9.9.9').replace('appVersion: 0.1.0', 'appVersion: 9.9.9'),
  );

  const values = { redis: { enabled: true, auth: { existingSecret: 'r' } } };
  const before = await objects({ ...newcomer, values });
  const after = await objects({
    chart: folder,
    args: ['--is-upgrade', '--values', join(root, 'charts/hookonce/ci/newcomer-values.yaml')],
    values,
  });
  assert.match(JSON.stringify(after), /hookonce-9\.9\.9/);
  for (const kind of ['Deployment', 'StatefulSet']) {
    const [old, next] = [the(kind, before).spec, the(kind, after).spec];
    assert.deepEqual(next.selector, old.selector);
    assert.doesNotMatch(JSON.stringify(next.selector), /helm\.sh|version/);
  }
  // The whole of it: voters do not restart because the chart is another.
  assert.deepEqual(the('StatefulSet', after).spec, the('StatefulSet', before).spec);
  for (const service of before.filter(({ kind }) => kind === 'Service')) {
    const pods = before.flatMap((object) => podsOf(object)).map(({ labels }) => labels);
    const selects = (labels: Record<string, string>) =>
      Object.entries(service.spec.selector).every(([name, value]) => labels[name] === value);
    assert.equal(pods.filter(selects).length, 1, service.metadata.name);
  }
});

test('B125: large numbers of a values file stay what they are', async () => {
  for (const helm of ['helm4', 'helm3'] as const) {
    const rendered = await objects({ helm, file: 'gateway-numbers-values.yaml' });
    assert.doesNotMatch(JSON.stringify(rendered), /e\+0/);
    const config = configFile(rendered);
    for (const line of [
      'maxInFlight: 100000',
      'maxWaiting: 1000000',
      'maxWaiters: 10000',
      'body: 1048576B',
      'port: 18081',
    ])
      assert.ok(config.includes(line), `${line} in ${config}`);
    assert.equal(the('StatefulSet', rendered).spec.minReadySeconds, 1_000_000);
    assert.equal(the('Deployment', rendered).spec.template.spec.terminationGracePeriodSeconds, 1_000_000);
  }
});

test('B127: a monitor carries the label by which Prometheus selects it, and is absent when it is not wanted', async () => {
  const on = await objects({
    ...newcomer,
    args: ['--set', 'serviceMonitor.enabled=true', '--set', 'serviceMonitor.labels.release=prom'],
  });
  const monitor = the('ServiceMonitor', on);
  assert.equal(monitor.metadata.labels.release, 'prom');
  const [port] = monitor.spec.endpoints;
  const service = on.find(
    ({ kind, metadata }) => kind === 'Service' && isSubset(monitor.spec.selector.matchLabels, metadata.labels),
  );
  assert.deepEqual(
    service.spec.ports.map(({ name }: KubeObject) => name),
    [port.port],
  );

  const pods = await objects({
    file: 'sidecar-values.yaml',
    args: ['--set', 'podMonitor.enabled=true', '--set', 'podMonitor.labels.release=prom'],
  });
  assert.equal(the('PodMonitor', pods).metadata.labels.release, 'prom');

  const off = await render(newcomer);
  assert.doesNotMatch(off.text, /monitoring\.coreos\.com/);
});

test('B129: a change of the configuration reaches the pods', async () => {
  const changes = [{}, { listen: { port: 9999 } }, { log: { level: 'debug' } }];
  const [before, port, log] = await Promise.all(changes.map((config) => objects({ ...newcomer, values: { config } })));
  const annotations = (from: readonly KubeObject[]) => the('Deployment', from).spec.template.metadata.annotations;
  assert.notDeepEqual(annotations(port!), annotations(before!));
  // Taken up by the gateways that run: no pod is restarted for it.
  assert.deepEqual(the('Deployment', log!), the('Deployment', before!));
  assert.match(configFile(log!), /level: debug/);
  assert.deepEqual(the('StatefulSet', port!), the('StatefulSet', before!));
  // The new port is the same everywhere.
  assert.match(configFile(port!), /port: 9999/);
  assert.equal(the('Service', port!, 'orders-hookonce').spec.ports[0].targetPort, 9999);
  const [container] = the('Deployment', port!).spec.template.spec.containers;
  assert.equal(container.ports[0].containerPort, 9999);
  // And what changes without a restart is seen, because the whole folder is mounted.
  assert.deepEqual(container.volumeMounts[0], { name: 'hookonce-config', mountPath: '/etc/hookonce', readOnly: true });
});

function isSubset(selector: Record<string, string>, labels: Record<string, string>): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}
