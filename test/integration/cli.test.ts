/** The command line as a process of its own: what it prints, and its exit codes. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import manifest from '../../package.json' with { type: 'json' };
import { systemClock } from '../../src/clock.ts';
import { startChild, type Child } from '../../src/demo/child.ts';
import { exchange } from '../../src/demo/exchange.ts';
import { freePort } from '../../src/demo/free-port.ts';
import { until } from '../../src/demo/until.ts';
import { program } from '../support/program.ts';

const route = 'routes: [{name: github, path: /github, sender: github, secrets: [{file: ./secret}]}]\n';
const secret = 'x3cr3t-of-the-tests';

/** A folder with a configuration and the secret beside it. */
async function folder(config: string): Promise<AsyncDisposable & { config: string }> {
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-cli-'));
  await writeFile(join(dir, 'secret'), `${secret}\n`);
  await writeFile(join(dir, 'config.yaml'), config);
  return { config: join(dir, 'config.yaml'), [Symbol.asyncDispose]: async () => await rm(dir, { recursive: true }) };
}

interface Run {
  readonly nodeArgs?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

function start(args: readonly string[], { nodeArgs = [], env = {} }: Run = {}): Child {
  return startChild(program.node, [...nodeArgs, program.entry, ...args], { env });
}

async function run(
  args: readonly string[],
  options: Run = {},
): Promise<{ code: number | null; lines: readonly string[] }> {
  await using child = start(args, options);
  return { code: (await child.exited).code, lines: child.lines };
}

/** A gateway that is ready. */
async function serving(
  drain: string,
  options: Run = {},
): Promise<AsyncDisposable & { child: Child; config: string; adminPort: number }> {
  await using stack = new AsyncDisposableStack();
  const adminPort = await freePort();
  const ports = `listen: {host: 127.0.0.1, port: 0}\nadmin: {host: 127.0.0.1, port: ${adminPort}}\n`;
  const { config } = stack.use(await folder(`${ports}drain: {${drain}}\n${route}`));
  const child = stack.use(start(['serve', '--config', config], options));
  await until(systemClock, 'a gateway that is ready', async () => {
    if (!child.running()) throw new Error(child.lines.join('\n'));
    return (await exchange(`http://127.0.0.1:${adminPort}/readyz`)).status === 200 ? true : undefined;
  });
  const moved = stack.move();
  return { child, config, adminPort, [Symbol.asyncDispose]: async () => await moved.disposeAsync() };
}

test('check says ok, and in short what the configuration means', async () => {
  await using right = await folder(route);
  const { code, lines } = await run(['check', '--config', right.config]);
  assert.equal(code, 0);
  assert.equal(lines[0], 'ok');
  assert.ok(lines.includes('route github: /github from github, secrets: 1, remembered for 7d'), lines.join('\n'));
  assert.match(lines.at(-1)!, /^warning: redis\.nodes: none/);
  assert.ok(!lines.join('\n').includes(secret));
});

test('B91: check and serve name everything that is wrong, without secrets, and exit with 2', async () => {
  await using wrong = await folder(
    `upstream: {timeoutMS: 500}\nroutes: [{name: a, path: /a, sender: github, secrett: ${secret}}]\n`,
  );
  for (const command of ['check', 'serve']) {
    const { code, lines } = await run([command, '--config', wrong.config]);
    assert.equal(code, 2);
    assert.deepEqual(lines, [
      `hookonce: 2 faults in ${wrong.config}`,
      'upstream.timeoutMS: unknown name; did you mean timeout?',
      'routes[0].secrett: unknown name; did you mean secrets?',
    ]);
  }
});

test('B89: a configuration that cannot be read ends the start with 2 and the reason', async () => {
  await using broken = await folder('routes: [\n');
  await using empty = await folder('');
  await using unreadable = await folder(route.replace('./secret', './none'));
  const missing = `${broken.config}.none`;
  const said = new Map([
    [broken.config, /^line 2, column 1: /],
    [empty.config, /^the configuration: found nothing/],
    [unreadable.config, /^routes\[0\]\.secrets\[0\]: file \.\/none cannot be read \(no such file\)$/],
    [missing, /^the file cannot be read \(no such file\)$/],
  ]);
  await Promise.all(
    [...said].map(async ([config, reason]) => {
      const { code, lines } = await run(['serve', '--config', config]);
      assert.equal(code, 2);
      assert.equal(lines[0], `hookonce: one fault in ${config}`);
      assert.match(lines[1]!, reason);
      assert.equal(lines.length, 2);
    }),
  );
});

test('the configuration is found by option, else by environment, else in its usual place', async () => {
  await using right = await folder(route);
  const [byEnvironment, byOption, usual] = await Promise.all([
    run(['check'], { env: { HOOKONCE_CONFIG: right.config } }),
    run(['check', '--config', right.config], { env: { HOOKONCE_CONFIG: '/nowhere.yaml' } }),
    run([], { env: { HOOKONCE_CONFIG: '' } }),
  ]);
  assert.equal(byEnvironment.lines[0], 'ok');
  assert.equal(byOption.lines[0], 'ok');
  assert.equal(usual.code, 2);
  assert.equal(usual.lines[0], 'hookonce: one fault in /etc/hookonce/config.yaml');
});

test('version and help answer on standard output; what is no command exits with 2 and a hint', async () => {
  const of = async (...args: string[]) => {
    const { code, lines } = await run(args);
    return [code, lines[0]];
  };
  const [version, flag, help, command, option, argument] = await Promise.all([
    of('version'),
    of('--version'),
    of('help'),
    of('chekc'),
    of('check', '--confg', 'x'),
    of('check', 'config.yaml'),
  ]);
  assert.deepEqual(version, [0, manifest.version]);
  assert.deepEqual(flag, [0, manifest.version]);
  assert.deepEqual(help, [0, 'hookonce lets each webhook through once.']);
  assert.deepEqual(command, [2, 'hookonce: unknown command chekc; did you mean check?']);
  assert.equal(option[0], 2);
  assert.match(String(option[1]), /^hookonce: Unknown option '--confg'/);
  assert.deepEqual(argument, [2, 'hookonce: check takes no argument config.yaml']);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} ends a gateway with 0`, async () => {
    await using gateway = await serving('delay: 0s');
    gateway.child.signal(signal);
    assert.deepEqual(await gateway.child.exited, { code: 0, signal: null });
    assert.ok(gateway.child.lines.some((line) => line.startsWith('hookonce: warning: redis.nodes: none')));
  });
}

test('a second signal does not wait for anything', async () => {
  await using gateway = await serving('delay: 5m, grace: 10m');
  gateway.child.signal('SIGTERM');
  const ready = async () => (await exchange(`http://127.0.0.1:${gateway.adminPort}/readyz`)).status;
  await until(systemClock, 'a gateway that drains', async () => ((await ready()) === 503 ? true : undefined));
  gateway.child.signal('SIGTERM');
  assert.deepEqual(await gateway.child.exited, { code: 1, signal: null });
});

test('a port that is taken is said in one line', async () => {
  await using gateway = await serving('delay: 0s');
  const { code, lines } = await run(['serve', '--config', gateway.config]);
  assert.equal(code, 1);
  const said = lines.filter((line) => line.startsWith('hookonce:') && !line.startsWith('hookonce: warning'));
  assert.deepEqual(said, [`hookonce: cannot listen on 127.0.0.1:${gateway.adminPort}: the port is taken (EADDRINUSE)`]);
});

test('a rejection that nobody handles is logged and ends the process with 1', async () => {
  const late = `data:text/javascript,process.on('SIGUSR2', () => void Promise.reject(new Error('nobody cares')))`;
  await using gateway = await serving('delay: 0s', { nodeArgs: ['--import', late] });
  gateway.child.signal('SIGUSR2');
  assert.deepEqual(await gateway.child.exited, { code: 1, signal: null });
  assert.ok(gateway.child.lines.some((line) => /^hookonce: .*Error: nobody cares/.test(line)));
});
