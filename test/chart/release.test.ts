/** What the chart renders, run for real: the gateway with its mounted configuration, the Redis nodes, and helm test. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock } from '../../src/clock.ts';
import { header } from '../../src/core/delivery.ts';
import { startChild, type Child } from '../../src/demo/child.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { stripe } from '../../src/demo/signers.ts';
import { until } from '../../src/demo/until.ts';
import { membershipOf } from '../../src/redis/membership.ts';
import { SCRIPT } from '../../src/redis/script.ts';
import { root } from '../setup/tool.ts';
import { answer, scriptedApplication, type ScriptedApplication } from '../support/application.ts';
import { program } from '../support/program.ts';
import { quorum } from '../support/quorum.ts';
import { configFile, objects, the, type KubeObject } from './helm.ts';
import { finished, mount, podRoot } from './mounted.ts';

const secrets = {
  stripe: 'a-secret-of-stripe\n',
  'hookonce-test': 'a-secret-for-the-test\n',
  'redis-password': 'a password\n',
};

let application: ScriptedApplication;
let rendered: readonly KubeObject[] = [];
let nodePorts: readonly number[] = [];
let gateway: Child;
let url = '';
const stack = new AsyncDisposableStack();
const pod = stack.use(podRoot());

/** The newcomer's release, with ports that are free here, a password for Redis, and the test. */
before(async () => {
  application = stack.use(await scriptedApplication());
  application.otherwise(answer(404));
  const [port, adminPort] = [await freePort(), await freePort()];
  url = `http://127.0.0.1:${port}`;
  rendered = await objects({
    file: 'newcomer-values.yaml',
    values: {
      config: {
        listen: { host: '127.0.0.1', port },
        admin: { host: '127.0.0.1', port: adminPort },
        claims: { firstStart: 'trust' },
        drain: { delay: '0s' },
      },
      service: { port },
      redis: { server: 'redis-server', cli: 'redis-cli', auth: { existingSecret: 'orders-redis' } },
      test: { enabled: true },
    },
  });

  nodePorts = await Promise.all([0, 1, 2].map(() => startNode(rendered)));
  const config = nodePorts.reduce(
    (text, nodePort, node) =>
      text.replace(`orders-hookonce-redis-${node}.orders-hookonce-redis.payments.svc:6379`, `127.0.0.1:${nodePort}`),
    configFile(rendered).replace('http://orders:80', application.url),
  );
  mkdirSync(join(pod.path, 'etc/hookonce/secrets'), { recursive: true });
  mount(join(pod.path, 'etc/hookonce'), { 'config.yaml': pod.at(config) });
  mount(join(pod.path, 'etc/hookonce/secrets'), secrets);

  gateway = stack.use(
    startChild(program.node, [program.entry, 'serve', '--config', pod.at('/etc/hookonce/config.yaml')]),
  );
  await until(systemClock, 'a gateway that counts three voters', async () => {
    if (!gateway.running()) throw new Error(gateway.lines.join('\n'));
    const metrics = (await exchange(`http://127.0.0.1:${adminPort}/metrics`)).body.toString();
    return metrics.match(/hookonce_voter_state\{[^}]*state="up"\} 1/g)?.length === 3 ? true : undefined;
  });
});
after(() => stack.disposeAsync());

/** Starts a node as its pod does, with its files and its access list; its probe must find it ready. */
async function startNode(from: readonly KubeObject[], certificates: Record<string, string> = {}): Promise<number> {
  const own = stack.use(podRoot());
  const port = await freePort();
  const files = the('ConfigMap', from, 'orders-hookonce-redis').data;
  for (const folder of ['data', 'run/hookonce-redis', 'etc/hookonce-redis/auth'])
    mkdirSync(join(own.path, folder), { recursive: true });
  mount(join(own.path, 'etc/hookonce-redis'), {
    'redis.conf': own.at(files['redis.conf']).replace('port 6379', `port ${port}\nbind 127.0.0.1`),
    'start.sh': own.at(files['start.sh']),
  });
  mount(join(own.path, 'etc/hookonce-redis/auth'), { password: secrets['redis-password'] });
  if (Object.keys(certificates).length > 0) mount(join(own.path, 'etc/hookonce-redis/tls'), certificates);
  const [container] = the('StatefulSet', from).spec.template.spec.containers;
  const [shell, script] = container.command;
  const child = stack.use(startChild(shell, [own.at(script)]));
  await child.line(/Ready to accept connections/);
  for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    const [sh, ...args] = container[probe].exec.command.map((word: string) => word.replace('-p 6379', `-p ${port}`));
    const { code, lines } = await finished(sh, args);
    assert.equal(code, 0, `${probe}: ${lines.join('\n')}`);
  }
  return port;
}

/** Runs the script of `helm test` as its pod does. */
async function helmTest(env: Record<string, string> = {}) {
  const file = join(pod.path, 'deliver-twice.mjs');
  writeFileSync(file, the('ConfigMap', rendered, 'orders-hookonce-test').data['deliver-twice.mjs']);
  const [container] = the('Pod', rendered).spec.containers;
  assert.deepEqual(container.args, ['/etc/hookonce-test/deliver-twice.mjs']);
  const given = Object.fromEntries(
    container.env.map(({ name, value }: KubeObject) => [
      name,
      pod.at(value).replace('//orders-hookonce:', '//127.0.0.1:'),
    ]),
  );
  const { code, lines } = await finished(program.node, [file], { ...given, ...env });
  return { code, said: lines.join('\n') };
}

test('helm test: one event, delivered twice, reaches the application once', async () => {
  const { code, said } = await helmTest();
  assert.equal(code, 0, said);
  assert.match(said, /second delivery: 404 duplicate/);
  const visits = application.visits.filter(({ target }) => target === '/hookonce-test');
  assert.deepEqual(
    visits.map(({ attempt }) => attempt),
    [1],
  );
});

test('helm test fails, and says why, when the application fails', async () => {
  application.otherwise(answer(500));
  const { code, said } = await helmTest();
  assert.equal(code, 1);
  assert.match(said, /failed: the application failed \(500\)/);
  application.otherwise(answer(404));
});

test('helm test fails when its secret is not the one of the route', async () => {
  const { code, said } = await helmTest({ SECRET_FILE: join(pod.path, 'etc/hookonce/secrets/stripe') });
  assert.equal(code, 1);
  assert.match(said, /first delivery: {2}401 rejected/);
});

test('helm test fails when nobody answers', async () => {
  const { code, said } = await helmTest({ GATEWAY_URL: 'http://127.0.0.1:9/', PATIENCE_S: '0' });
  assert.equal(code, 1);
  assert.match(said, /first delivery: {2}0 no answer/);
});

test('bundled Redis: only who has the password may do anything, and only what gateways do', async () => {
  const redis = async (...args: string[]) => {
    const { lines } = await finished('redis-cli', ['-p', String(nodePorts[0]), '--no-auth-warning', ...args]);
    return lines[0];
  };
  const gatewayUser = ['--user', 'hookonce', '--pass', 'a password'];
  assert.match((await redis('get', 'ho:x'))!, /^NOAUTH/);
  assert.match((await redis('--user', 'probe', '--pass', 'any', 'get', 'ho:x'))!, /^NOPERM/);
  assert.equal(await redis(...gatewayUser, 'get', 'ho:x'), '');
  for (const command of [['get', 'other'], ['flushall'], ['keys', '*'], ['config', 'get', '*'], ['acl', 'list']])
    assert.match((await redis(...gatewayUser, ...command))!, /^NOPERM/, command.join(' '));
});

test('bundled Redis: every command that gateways send is allowed', async () => {
  const [, allowed = ''] =
    /may='(.*)'/.exec(the('ConfigMap', rendered, 'orders-hookonce-redis').data['start.sh']) ?? [];
  const link = await readFile(join(root, 'src/redis/redis-link.ts'), 'utf8');
  const sent = [...SCRIPT.matchAll(/\bcall(?:\(|, )'([A-Z]+)'/g), ...link.matchAll(/#redis\.([a-z]+)\(/g)].map(
    ([, command = '']) => command.toLowerCase(),
  );
  // CONFIG would also show passwords; what it hides, gateways do without.
  // Without CLUSTER a cluster's lane that is empty looks as one that forgot; the chart's nodes are no cluster.
  const own = ['on', 'disconnect', 'config', 'call', 'cluster'];
  for (const command of new Set(sent.filter((name) => !own.includes(name))))
    assert.match(allowed, new RegExp(`\\+${command}\\b`), command);
});

test('bundled Redis: without a password anybody may do what gateways do, and no more; with certificates, nothing in clear', async (t) => {
  const values = { redis: { server: 'redis-server', cli: 'redis-cli' } };
  const open = await startNode(await objects({ file: 'newcomer-values.yaml', values }));
  assert.deepEqual((await finished('redis-cli', ['-p', `${open}`, 'get', 'ho:x'])).lines, ['']);
  assert.match((await finished('redis-cli', ['-p', `${open}`, 'flushall'])).lines.join(), /^NOPERM/);

  const folder = mkdtempSync(join(tmpdir(), 'hookonce-certificate-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const [key, certificate] = [join(folder, 'key'), join(folder, 'certificate')];
  const request = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-subj',
    '/CN=redis',
  ];
  const { code, lines } = await finished('openssl', [...request, '-keyout', key, '-out', certificate]);
  assert.equal(code, 0, `openssl is needed to make a certificate: ${lines.join('\n')}`);
  const [pem, keyPem] = [readFileSync(certificate, 'utf8'), readFileSync(key, 'utf8')];
  const secured = await objects({
    file: 'newcomer-values.yaml',
    values: { redis: { ...values.redis, tls: { existingSecret: 'certificates' } } },
  });
  const encrypted = await startNode(secured, { 'ca.crt': pem, 'server.crt': pem, 'server.key': keyPem });
  assert.notEqual((await finished('redis-cli', ['-p', `${encrypted}`, 'ping'])).lines.join(), 'PONG');
});

test('bundled Redis: the readiness probe fails while gateways find the node on hold, and only for as long', async () => {
  const values = { redis: { server: 'redis-server', cli: 'redis-cli' } };
  const from = await objects({ file: 'newcomer-values.yaml', values });
  const port = await startNode(from);
  const [{ readinessProbe, livenessProbe }] = the('StatefulSet', from).spec.template.spec.containers;
  const probe = async ({ exec }: KubeObject): Promise<number | null> => {
    const [sh, ...args] = exec.command.map((word: string) => word.replace('-p 6379', `-p ${port}`));
    return (await finished(sh, args)).code;
  };
  const membership = membershipOf('payments/orders', [`127.0.0.1:${port}`], []);
  await using one = quorum([port], { membership, firstStart: 'wait' });
  const [voter] = one.voters;
  await until(systemClock, 'the node to be met', () => voter!.eligible || undefined);
  assert.equal(voter!.hold, 'empty');
  assert.deepEqual([await probe(readinessProbe), await probe(livenessProbe)], [1, 0]);
  await voter!.trust();
  await voter!.greet();
  assert.equal(voter!.hold, '');
  assert.deepEqual([await probe(readinessProbe), await probe(livenessProbe)], [0, 0]);
  const service = the('Service', from, 'orders-hookonce-redis');
  assert.equal(service.spec.publishNotReadyAddresses, true, 'gateways must reach it all the while');
});

test("the newcomer's route takes the sender's deliveries, once each", async () => {
  const body = Buffer.from('{"id":"evt_1"}');
  const path = `${url}/webhooks/stripe`;
  assert.equal((await exchange(path, { method: 'POST', body })).status, 401);
  application.otherwise(answer(200));
  const signed = { method: 'POST', ...stripe(secrets.stripe.trimEnd(), body, systemClock.wall()) };
  const replies = [await exchange(path, signed), await exchange(path, signed)];
  assert.deepEqual(
    replies.map(({ status, headers }) => [status, header(headers, 'hookonce-outcome')]),
    [
      [200, undefined],
      [200, 'duplicate'],
    ],
  );
  assert.equal(application.of('evt_1').length, 1);
});

test('B129: a changed ConfigMap reaches the running gateway through its mount', async () => {
  const path = join(pod.path, 'etc/hookonce');
  const config = readFileSync(join(path, 'config.yaml'), 'utf8');
  mount(path, { 'config.yaml': config.replace('/webhooks/stripe', '/webhooks/stripe-moved') });
  await until(systemClock, 'a gateway with the new route', async () => {
    const { status } = await exchange(`${url}/webhooks/stripe-moved`, { method: 'POST', body: Buffer.from('{}') });
    return status === 401 ? true : undefined;
  });
  assert.ok(gateway.running());
});

test('k8s/example: its application handles a request, and ends when it is told to', async () => {
  const port = await freePort();
  await using server = startChild(program.node, [join(root, 'k8s/example/server.mjs')], {
    env: { ...process.env, PORT: `${port}` },
  });
  await server.line(/^listening/);
  const reply = await exchange(`http://127.0.0.1:${port}/webhooks/github`, { method: 'POST', body: Buffer.from('{}') });
  assert.equal(reply.status, 200);
  await server.line(/^POST \/webhooks\/github 2 bytes$/);
  server.signal('SIGTERM');
  assert.deepEqual(await server.exited, { code: 0, signal: null });
});
