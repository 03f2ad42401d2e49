/** A gateway as a process of its own, started from this same program with a configuration file. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import type { Clock } from '../core/ports.ts';
import { startChild, type Child, type Exit } from './child.ts';
import { exchange } from './exchange.ts';
import { freePort } from './free-port.ts';
import { until } from './until.ts';

/** How to start this program: the Node binary and the script, as absolute paths. */
export interface Program {
  readonly node: string;
  readonly entry: string;
}

export interface GatewayConfig {
  /** The configuration file's content; ports to listen on are filled in. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Text files beside it, by relative name: `{file: NAME}` in the configuration refers to them. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface Gateway extends AsyncDisposable {
  readonly url: string;
  readonly adminUrl: string;
  /** Where its configuration and the files beside it lie. */
  readonly directory: string;
  /** The running process; another one after each restart. */
  readonly child: Child;
  metrics(): Promise<string>;
  /** Asks it to end, and waits until it has. */
  terminate(): Promise<Exit>;
  /** Changes its files while it runs. */
  rewrite(changed: GatewayConfig): Promise<void>;
  /** Kills it if it still runs and starts it again on the same ports, with another configuration if one is given. */
  restart(changed?: GatewayConfig): Promise<void>;
}

/** Resolves when the gateway is ready; rejects with its last lines when it ends before that. */
export async function startGateway(program: Program, clock: Clock, given: GatewayConfig): Promise<Gateway> {
  await using starting = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-gateway-'));
  starting.defer(async () => await rm(dir, { recursive: true, force: true }));
  const [port, adminPort] = [await freePort(), await freePort()];
  const adminUrl = `http://127.0.0.1:${adminPort}`;

  async function write({ config, files = {} }: GatewayConfig): Promise<void> {
    const host = '127.0.0.1';
    const ports = {
      listen: { host, port },
      ...config,
      admin: { host, port: adminPort, ...(config['admin'] as object | undefined) },
    };
    for (const [name, text] of Object.entries({ ...files, 'config.yaml': stringify(ports) })) {
      await mkdir(dirname(join(dir, name)), { recursive: true });
      await writeFile(join(dir, name), text);
    }
  }

  async function launch(next: GatewayConfig): Promise<Child> {
    await write(next);
    await using unready = new AsyncDisposableStack();
    const child = unready.use(
      startChild(program.node, [program.entry, 'serve', '--config', 'config.yaml'], { cwd: dir }),
    );
    await until(clock, 'a gateway that is ready', async () => {
      if (!child.running()) return true;
      return (await exchange(`${adminUrl}/readyz`)).status === 200 ? true : undefined;
    });
    if (!child.running()) throw new Error(`the gateway ended at its start:\n${child.lines.slice(-20).join('\n')}`);
    unready.move();
    return child;
  }

  let current = given;
  let child = await launch(current);
  const stack = starting.move();
  return {
    url: `http://127.0.0.1:${port}`,
    adminUrl,
    directory: dir,
    get child() {
      return child;
    },
    metrics: async () => (await exchange(`${adminUrl}/metrics`)).body.toString(),
    terminate: async () => {
      child.signal('SIGTERM');
      return await child.exited;
    },
    rewrite: write,
    async restart(changed = current) {
      await child[Symbol.asyncDispose]();
      current = changed;
      child = await launch(current);
    },
    async [Symbol.asyncDispose]() {
      await child[Symbol.asyncDispose]();
      await stack.disposeAsync();
    },
  };
}
