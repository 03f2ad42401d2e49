/** What cannot work is said in a sentence, before anything is installed. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { objects, render } from './helm.ts';

const route = {
  name: 'github',
  path: '/github',
  sender: 'github',
  secrets: [{ file: '/etc/hookonce/secrets/github' }],
};
const config = { upstream: { url: 'http://orders:80' }, routes: [route] };
const nodes = [{ url: 'redis://a:6379' }, { url: 'redis://b:6379' }, { url: 'redis://c:6379' }];
const good = { config, redis: { enabled: true } };

/** By what the sentence says: values that lead to it. */
const refused: Readonly<Record<string, object>> = {
  'config.routes is empty: name at least one route': { ...good, config: { ...config, routes: [] } },
  "config.upstream.url must name the application's Service": { ...good, config: { routes: [route] } },
  'in mode gateway the gateway has pods of its own': {
    ...good,
    config: { ...config, upstream: { url: 'http://localhost:1' } },
  },
  'redis.enabled and config.redis.nodes exclude each other': { ...good, config: { ...config, redis: { nodes } } },
  'More than one gateway, but no Redis': { config },
  'redis.nodes is 4: votes need 3, 5 or 7 nodes': { config, redis: { enabled: true, nodes: 4 } },
  'redis.nodes is 9: votes need 3, 5 or 7 nodes': { config, redis: { enabled: true, nodes: 9 } },
  'redis.previousNodes is 5 with redis.nodes 3': { config, redis: { enabled: true, nodes: 3, previousNodes: 5 } },
  'redis.previousNodes is 2 with redis.nodes 3': { config, redis: { enabled: true, nodes: 3, previousNodes: 2 } },
  'of three nodes one may fail, of one none': { config, redis: { enabled: true, nodes: 1 } },
  'secrets.existingSecret and secrets.data exclude each other': {
    ...good,
    secrets: { existingSecret: 'a', data: { b: 'c' } },
  },
  'serviceMonitor is for mode gateway': { ...good, mode: 'sidecar', serviceMonitor: { enabled: true } },
  'would scrape every gateway twice': { ...good, serviceMonitor: { enabled: true }, podMonitor: { enabled: true } },
  'injection is for mode sidecar': { ...good, injection: { enabled: true } },
  'secrets.items has no effect on injected sidecars': {
    ...good,
    mode: 'sidecar',
    injection: { enabled: true },
    secrets: { existingSecret: 'a', items: [{ key: 'b', path: 'c' }] },
  },
  "isolates the application's pods as a whole": { ...good, mode: 'sidecar', networkPolicy: { enabled: true } },
  'ledger.enabled: say in ledger.existingSecret which Secret': { ...good, ledger: { enabled: true } },
  'ledger.existingSecret and config.ledger.url exclude each other': {
    ...good,
    config: { ...config, ledger: { url: { env: 'LEDGER' } } },
    ledger: { enabled: true, existingSecret: 'a' },
  },
  'github has onUnavailable: ledger, but there is no ledger': {
    ...good,
    config: { ...config, routes: config.routes.map((route) => ({ ...route, onUnavailable: 'ledger' })) },
  },
  'queue.existingSecret and config.queue.url exclude each other': {
    ...good,
    config: { ...config, queue: { url: 'redis://queue' } },
    queue: { enabled: true, existingSecret: 'a' },
  },
  'github has mode: async, but there is no queue': {
    ...good,
    config: { ...config, routes: [{ ...route, mode: 'async' }] },
  },
};

for (const [sentence, values] of Object.entries(refused)) {
  test(`refused: ${sentence}`, async () => {
    const { ok, text } = await render({ values });
    assert.ok(!ok && text.includes(sentence), text);
  });
}

test('everything that is wrong is said at once, and nothing where all is well', async () => {
  await objects({ values: good });
  const { text } = await render();
  for (const sentence of Object.keys(refused).slice(0, 2)) assert.ok(text.includes(sentence), text);
  assert.ok(text.includes('More than one gateway'), text);
});

/** By the path of the value that the schema refuses. */
const misspelt: Readonly<Record<string, object>> = {
  replica: { ...good, replica: 3 },
  'redis.auth': { config, redis: { enabled: true, auth: { existing: 'a' } } },
  config: { ...good, config: { ...config, route: [] } },
  'config.routes.0': { ...good, config: { ...config, routes: [{ ...route, secrett: [] }] } },
  'config.routes.0.secrets.0': { ...good, config: { ...config, routes: [{ ...route, secrets: ['whsec_pasted'] }] } },
  'config.upstream.maxInFlight': { ...good, config: { ...config, upstream: { url: 'http://a', maxInFlight: 0 } } },
  'config.upstream.timeout': { ...good, config: { ...config, upstream: { url: 'http://a', timeout: 15 } } },
  'config.listen.port': { ...good, config: { ...config, listen: { port: 0 } } },
  mode: { ...good, mode: 'daemonset' },
  'image.tag': { ...good, image: { tag: 1.2 } },
  'redis.antiAffinity': { config, redis: { enabled: true, antiAffinity: 'maybe' } },
};

for (const helm of ['helm4', 'helm3'] as const) {
  test(`the schema refuses names and kinds of value that are not known, with ${helm}`, async () => {
    for (const [path, values] of Object.entries(misspelt)) {
      const { ok, text } = await render({ helm, values });
      assert.ok(!ok && text.includes("values don't meet the specifications of the schema"), `${path}: ${text}`);
      const said = text.replaceAll('/', '.');
      assert.ok(said.includes(path), `${path}: ${text}`);
    }
  });
}

test('the injector says below 1.36 what to use instead', async () => {
  const { ok, text } = await render({ chart: 'hookonce-injector', kubernetes: '1.35.8' });
  assert.ok(!ok);
  assert.match(text, /needs Kubernetes 1\.36 or newer.*this is v1\.35\.8.*library chart hookonce-lib/);
});

test('before 1.29, native sidecars are not there, and nothing is rendered', async () => {
  const { ok, text } = await render({ values: good, kubernetes: '1.28.15' });
  assert.ok(!ok && text.includes('requires kubeVersion: >=1.29.0-0'), text);
});
