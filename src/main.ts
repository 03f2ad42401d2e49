#!/usr/bin/env node
/** The command line, and the only user of `process`. Exit codes: 0; 1 failed; 2 usage or configuration. */
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import manifest from '../package.json' with { type: 'json' };
import { systemClock } from './clock.ts';
import { loadConfig, type Loaded } from './config/load.ts';
import { nearest } from './config/nearest.ts';
import { reasonOf } from './config/secrets.ts';
import { summary } from './config/summary.ts';
import { senders } from './senders/index.ts';

const usage = `hookonce lets each webhook through once.

Usage: hookonce [command] [--config FILE]

Commands:
  serve      run the gateway (the default)
  check      read the configuration and say what is wrong with it
  demo       show the main job on this machine, with a storm of deliveries
  version    print the version
  help       print this

Options:
  --config FILE   default: $HOOKONCE_CONFIG, else /etc/hookonce/config.yaml`;

const commands = new Map<string, (configPath: string) => Promise<number>>([
  ['serve', serve],
  ['check', async (path) => check(path)],
  ['demo', demo],
  ['version', async () => say(manifest.version)],
  ['help', async () => say(usage)],
]);

async function main(args: string[]): Promise<number> {
  let parsed;
  try {
    const options = {
      config: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean' },
    } as const;
    parsed = parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    return misused((error as Error).message.split('\n')[0]!);
  }
  const { values, positionals } = parsed;
  const name = values.help ? 'help' : values.version ? 'version' : (positionals[0] ?? 'serve');
  const command = commands.get(name);
  if (command === undefined) {
    const meant = nearest(name, commands.keys());
    return misused(`unknown command ${name}${meant === undefined ? '' : `; did you mean ${meant}?`}`);
  }
  if (positionals.length > 1) return misused(`${name} takes no argument ${positionals[1]}`);
  if (values.config === '') return misused('--config needs the name of a file');
  return await command(values.config ?? (process.env['HOOKONCE_CONFIG'] || '/etc/hookonce/config.yaml'));
}

/** Runs until SIGTERM or SIGINT, then ends what is in flight. A second signal ends the process at once. */
async function serve(configPath: string): Promise<number> {
  // Heard from the start: a signal that comes while starting is obeyed once there is something to stop.
  const stopped = stopSignal();
  const loaded = load(configPath);
  if (!loaded.ok) return complain(configPath, loaded.complaints);
  for (const warning of loaded.warnings) console.error(`hookonce: warning: ${warning}`);

  const { startApp } = await import('./app.ts');
  let started;
  try {
    started = await startApp(loaded.config, { clock: systemClock });
  } catch (error) {
    return cannotStart(error);
  }
  await using app = started;
  await stopped;
  await app.drain();
  return 0;
}

function check(configPath: string): number {
  const loaded = load(configPath);
  return loaded.ok ? say(summary(loaded.config, loaded.warnings)) : complain(configPath, loaded.complaints);
}

async function demo(): Promise<number> {
  const { runDemo } = await import('./demo/run.ts');
  const abort = new AbortController();
  void stopSignal().then(() => abort.abort());
  const program = { node: process.execPath, entry: resolve(process.argv[1]!) };
  return await runDemo({ program, clock: systemClock, print: (line) => void say(line), signal: abort.signal });
}

function load(configPath: string): Loaded {
  const folder = dirname(resolve(configPath));
  const readFile = (path: string) => readFileSync(resolve(folder, path));
  let text: string;
  try {
    text = readFileSync(configPath, 'utf8');
  } catch (error) {
    return { ok: false, complaints: [`the file cannot be read (${reasonOf(error)})`] };
  }
  return loadConfig({ path: configPath, text, env: process.env, readFile, memoryLimit: memoryLimit() }, senders);
}

/** Of the container, in bytes. Where there is none, the kernel names 0 or some number beyond the machine's memory. */
function memoryLimit(): number | undefined {
  const limit = process.constrainedMemory();
  return limit > 0 && limit < totalmem() ? limit : undefined;
}

/** Resolves with the first signal to stop. */
function stopSignal(): Promise<void> {
  return new Promise((first) => {
    let heard = false;
    const hear = () => {
      if (heard) process.exit(1);
      heard = true;
      first();
    };
    process.on('SIGTERM', hear).on('SIGINT', hear);
  });
}

function say(text: string): number {
  console.log(text);
  return 0;
}

function misused(what: string): number {
  console.error(`hookonce: ${what}\n(hookonce help shows how it is used)`);
  return 2;
}

function complain(configPath: string, complaints: readonly string[]): number {
  console.error(`hookonce: ${complaints.length === 1 ? 'one fault' : `${complaints.length} faults`} in ${configPath}`);
  for (const complaint of complaints) console.error(complaint);
  return 2;
}

/** One line for what an operator can mend, the whole stack for what should not happen. */
function cannotStart(error: unknown): number {
  const { syscall, code, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  const reasons: Record<string, string> = {
    EADDRINUSE: 'the port is taken',
    EACCES: 'the port needs privileges',
    EADDRNOTAVAIL: 'this machine has no such address',
    ENOTFOUND: 'no such host name',
  };
  const reason = reasons[code ?? ''];
  if (reason !== undefined && (syscall === 'listen' || syscall === 'getaddrinfo')) {
    const where = syscall === 'listen' ? `${address}:${port}` : (error as { hostname?: string }).hostname;
    console.error(`hookonce: cannot listen on ${where}: ${reason} (${code})`);
  } else {
    console.error(`hookonce: cannot start: ${stackOf(error)}`);
  }
  return 1;
}

/** Stacks only: what else hangs on an error may be a secret, such as the arguments of a command to Redis. */
function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return `${error.stack}${error.cause === undefined ? '' : `\ncaused by: ${stackOf(error.cause)}`}`;
}

function die(error: unknown): void {
  console.error(`hookonce: this should not have happened, and ends the process: ${stackOf(error)}`);
  process.exit(1);
}

process.on('uncaughtException', die).on('unhandledRejection', die);
process.exit(await main(process.argv.slice(2)));
