/** The injector's policy, evaluated: what it makes of a pod. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse as parseCel } from '@bufbuild/cel';
import { evaluate } from './cel.ts';
import { objects, the, type KubeObject } from './helm.ts';
import { ordersChart, sidecarOf, templateOf } from './orders-chart.ts';
import { repeatedEntries } from './pods.ts';
import { typeComplaints } from './field-check.ts';

/** Applies the injector's policy to a pod, with what the release `orders` in its namespace says of itself. */
async function injected(
  pod: KubeObject,
  file = 'sidecar-full-values.yaml',
  values = {},
  injector = 'default-values.yaml',
): Promise<KubeObject> {
  const release = await objects({ file, values: { injection: { enabled: true }, ...values } });
  const params = release.find(({ metadata }) => metadata.labels['hookonce.io/injection'] === 'enabled');
  const policy = the('MutatingAdmissionPolicy', await objects({ chart: 'hookonce-injector', file: injector }));
  const [{ jsonPatch }] = policy.spec.mutations;
  const patched = structuredClone(pod);
  for (const { op, path, value } of evaluate(jsonPatch.expression, { object: pod, params }) as KubeObject[]) {
    assert.equal(op, 'add');
    const [, , list, end] = path.split('/');
    if (end === '-') patched.spec[list].push(value);
    else patched.spec[list] = value;
  }
  return patched;
}

const bare = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'orders' },
  spec: { containers: [{ name: 'orders', image: 'x' }] },
};

test('a pod gets the container of the library chart, and the volumes of its configuration', async () => {
  const { spec } = await injected(bare);
  using chart = await ordersChart();
  assert.deepEqual(spec.initContainers, [sidecarOf(templateOf(await objects({ chart: chart.path }), 'orders').spec)]);
  assert.deepEqual(spec.volumes, [
    { name: 'hookonce-config', configMap: { name: 'orders', items: [{ key: 'config.yaml', path: 'config.yaml' }] } },
    {
      name: 'hookonce-secrets',
      projected: {
        sources: [
          { secret: { name: 'orders-webhooks', optional: false } },
          { secret: { name: 'orders-redis', items: [{ key: 'password', path: 'redis-password' }] } },
          { secret: { name: 'orders-redis-tls', items: [{ key: 'authority.pem', path: 'redis-ca.crt' }] } },
        ],
      },
    },
  ]);
});

test('what a pod has already stays before it, and Secrets that are not there are not asked for', async () => {
  const own = { initContainers: [{ name: 'migrate', image: 'x' }], volumes: [{ name: 'scratch', emptyDir: {} }] };
  const { spec } = await injected({ ...bare, spec: { ...bare.spec, ...own } }, 'sidecar-values.yaml', {
    secrets: { existingSecret: '' },
  });
  assert.deepEqual(
    spec.initContainers.map(({ name }: KubeObject) => name),
    ['migrate', 'hookonce'],
  );
  assert.deepEqual(
    spec.volumes.map(({ name }: KubeObject) => name),
    ['scratch', 'hookonce-config', 'hookonce-secrets'],
  );
  assert.deepEqual(spec.volumes[2].projected.sources, [
    { secret: { name: 'orders-hookonce-secrets', optional: true } },
  ]);
  assert.deepEqual(repeatedEntries(spec), []);
});

test('its own values reach the container, texts whole', async () => {
  const { initContainers } = (await injected(bare, undefined, undefined, 'full-values.yaml')).spec;
  assert.deepEqual(initContainers[0].env, [
    { name: 'NODE_OPTIONS', value: '--max-old-space-size=64' },
    { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    { name: 'QUOTED', value: 'say "once" & <only> once' },
  ]);
  assert.deepEqual(initContainers[0].resources, {
    requests: { cpu: '1', memory: '128Mi' },
    limits: { memory: '128Mi' },
  });
  assert.equal(initContainers[0].ports[0].containerPort, 18081);
  assert.equal(await typeComplaints([await injected(bare, undefined, undefined, 'full-values.yaml')]), '');
});

test('every expression is CEL, and policies are bound to pods with the label alone', async () => {
  const rendered = await objects({ chart: 'hookonce-injector' });
  const text = JSON.stringify(rendered);
  const expressions = [...text.matchAll(/"(?:messageExpression|expression)":("(?:[^"\\]|\\.)*")/g)].map(([, quoted]) =>
    JSON.parse(quoted!),
  );
  assert.equal(expressions.length, 5);
  for (const expression of expressions) parseCel(expression);
  for (const kind of ['MutatingAdmissionPolicyBinding', 'ValidatingAdmissionPolicyBinding']) {
    assert.deepEqual(the(kind, rendered).spec.matchResources.objectSelector.matchExpressions, [
      { key: 'hookonce.io/config', operator: 'Exists' },
    ]);
  }
  assert.equal(the('MutatingAdmissionPolicy', rendered).spec.failurePolicy, 'Fail');
  assert.deepEqual(the('ValidatingAdmissionPolicyBinding', rendered).spec.validationActions, ['Deny']);
});
