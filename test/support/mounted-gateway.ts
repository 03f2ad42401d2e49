/** A gateway whose configuration and secrets are mounted as Kubernetes mounts them: swapped as a whole, by a link. */
import { mkdir, mkdtemp, readdir, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { systemClock } from '../../src/clock.ts';
import { startChild, type Child } from '../../src/demo/child.ts';
import { exchange, type Reply } from '../../src/demo/exchange.ts';
import { freePort } from '../../src/demo/free-port.ts';
import type { Signed } from '../../src/demo/signers.ts';
import { until } from '../../src/demo/until.ts';
import { scriptedApplication, type ScriptedApplication } from './application.ts';
import { sum } from './metrics.ts';
import { program } from './program.ts';

type Files = Readonly<Record<string, string>>;

/** `..1/config.yaml`, `..data → ..1`, `config.yaml → ..data/config.yaml`. */
export class Mount {
  readonly dir: string;
  #generation = 0;

  constructor(dir: string) {
    this.dir = dir;
  }

  /** All files at once, as the kubelet does: the old folder is gone afterwards. */
  async swap(files: Files): Promise<void> {
    this.#generation += 1;
    const name = `..${this.#generation}`;
    await mkdir(join(this.dir, name), { recursive: true });
    for (const [file, text] of Object.entries(files)) await writeFile(join(this.dir, name, file), text);
    await symlink(name, join(this.dir, '..data_tmp'));
    await rename(join(this.dir, '..data_tmp'), join(this.dir, '..data'));
    const there = await readdir(this.dir);
    for (const file of Object.keys(files))
      if (!there.includes(file)) await symlink(join('..data', file), join(this.dir, file));
    for (const file of there) if (!file.startsWith('..') && !(file in files)) await unlink(join(this.dir, file));
    await rm(join(this.dir, `..${this.#generation - 1}`), { recursive: true, force: true });
  }
}

export interface MountedGateway extends AsyncDisposable {
  readonly child: Child;
  readonly application: ScriptedApplication;
  readonly configFile: string;
  readonly secrets: Mount;
  /** The text of a configuration file: the ports of this gateway, its application, and what is given. */
  text(settings: Readonly<Record<string, unknown>>): string;
  /** Swaps the configuration's mount; a text is taken as it is. */
  configure(settings: Readonly<Record<string, unknown>> | string): Promise<void>;
  post(path: string, message: Signed): Promise<Reply>;
  metric(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
  /** Resolves when a metric has come to this value. */
  reaches(value: number, name: string, labels?: Readonly<Record<string, string>>): Promise<void>;
}

/** References to secrets are `{file: ../secrets/NAME}`. The voter is the embedded one. */
export async function mountedGateway(
  settings: Readonly<Record<string, unknown>>,
  secrets: Files,
): Promise<MountedGateway> {
  await using starting = new AsyncDisposableStack();
  const dir = await mkdtemp(join(tmpdir(), 'hookonce-mounted-'));
  starting.defer(async () => await rm(dir, { recursive: true, force: true }));
  const application = starting.use(await scriptedApplication());
  const [port, adminPort] = [await freePort(), await freePort()];
  const own = {
    listen: { host: '127.0.0.1', port },
    admin: { host: '127.0.0.1', port: adminPort },
    upstream: { url: application.url },
    unmatched: 'reject',
    drain: { delay: '0s' },
  };
  const text = (given: Readonly<Record<string, unknown>>): string => stringify({ ...own, ...given });
  const config = new Mount(join(dir, 'config'));
  const mounted = new Mount(join(dir, 'secrets'));
  await mounted.swap(secrets);
  await config.swap({ 'config.yaml': text(settings) });
  const configFile = join(dir, 'config/config.yaml');
  const child = starting.use(startChild(program.node, [program.entry, 'serve', '--config', configFile]));
  await until(systemClock, 'a gateway that is ready', async () => {
    if (!child.running()) throw new Error(child.lines.slice(-20).join('\n'));
    return (await exchange(`http://127.0.0.1:${adminPort}/readyz`)).status === 200 ? true : undefined;
  });
  const metric: MountedGateway['metric'] = async (name, labels) =>
    sum([(await exchange(`http://127.0.0.1:${adminPort}/metrics`)).body.toString()], name, labels);
  const stack = starting.move();
  return {
    ...{ child, application, configFile, secrets: mounted, text, metric },
    configure: async (given) =>
      await config.swap(typeof given === 'string' ? { 'config.yaml': given } : { 'config.yaml': text(given) }),
    post: async (path, message) => await exchange(`http://127.0.0.1:${port}${path}`, { method: 'POST', ...message }),
    reaches: async (value, name, labels) => {
      const look = async () => ((await metric(name, labels)) === value ? true : undefined);
      await until(systemClock, `${name} ${JSON.stringify(labels ?? {})} of ${value}`, look, 10_000);
    },
    [Symbol.asyncDispose]: async () => await stack.disposeAsync(),
  };
}
