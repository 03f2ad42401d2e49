/** The configurations that are rendered, read by the gateway's own code. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadConfig } from '../../src/config/load.ts';
import { senders } from '../../src/senders/index.ts';
import { root } from '../setup/tool.ts';
import { configFile, objects, parse, run, valuesFiles } from './helm.ts';

/** As the gateway would read it, every secret being there. */
function loaded(text: string) {
  const readFile = (path: string) => {
    if (path.endsWith('.crt')) return Buffer.from('-----BEGIN CERTIFICATE-----');
    if (path.endsWith('/queue-url')) return Buffer.from('redis://queue:6379');
    return Buffer.from(path.endsWith('/ledger-url') ? 'postgres://hookonce:a-secret@postgres/events' : 'a-secret');
  };
  return loadConfig({ path: '/etc/hookonce/config.yaml', text, env: { OWN_SECRET: 'a-secret' }, readFile }, senders);
}

test('every configuration that is rendered is one that the gateway takes', async () => {
  for (const file of valuesFiles('hookonce')) {
    const result = loaded(configFile(await objects({ file })));
    assert.ok(result.ok, `${file}: ${JSON.stringify(result)}`);
  }
  const { text } = await run('kubectl', ['kustomize', join(root, 'k8s/overlays/orders')]);
  const result = loaded(configFile(parse(text)));
  assert.ok(result.ok && result.config.redis.nodes.length === 3);
});

test('while the release’s own nodes grow in number, the gateways know the old ones and the new ones', async () => {
  const values = { redis: { nodes: 5, previousNodes: 3 } };
  const result = loaded(configFile(await objects({ file: 'newcomer-values.yaml', values })));
  assert.ok(result.ok);
  const { nodes, previous } = result.config.redis;
  assert.equal(nodes.length, 5);
  assert.deepEqual(previous, nodes.slice(0, 3));
});

test('the values file that the README begins with is one of those that are tried', () => {
  const readme = readFileSync(join(root, 'charts/hookonce/README.md'), 'utf8');
  const [, written = ''] = /```yaml\n(.*?)```/s.exec(readme) ?? [];
  const tried = readFileSync(join(root, 'charts/hookonce/ci/newcomer-values.yaml'), 'utf8');
  assert.deepEqual(parse(written), parse(tried));
});

test('B125: large numbers arrive in the gateway as they were written', async () => {
  const result = loaded(configFile(await objects({ file: 'gateway-numbers-values.yaml' })));
  assert.ok(result.ok);
  const { listen, upstream, limits, routes } = result.config;
  assert.deepEqual([listen.port, upstream.maxInFlight, upstream.maxWaiting], [18_081, 100_000, 1_000_000]);
  assert.deepEqual([limits.bodyBytes, limits.memoryBytes], [1_048_576, 1_073_741_824]);
  assert.deepEqual([routes[0]!.retentionMs, routes[0]!.inFlight.maxWaiters], [259_200_000, 10_000]);
});
