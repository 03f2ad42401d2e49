#!/usr/bin/env node
/** The command line, and the only user of `process`. Exit codes: 0; 1 failed; 2 usage or configuration. */
import { totalmem } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import manifest from '../package.json' with { type: 'json' };
import { systemClock } from './clock.ts';
import { nearest } from './config/nearest.ts';
import { readConfig, type Reading } from './config/reading.ts';
import { configJsonSchema } from './config/json-schema.ts';
import { reloadOnChange } from './config/reload.ts';
import { summary } from './config/summary.ts';
import { operate, type Asked } from './operator/command.ts';
import { bar, dlq, type AskedOfDlq } from './operator/dlq.ts';
import { senders } from './senders/index.ts';

const usage = `hookonce lets each webhook through once.

Usage: hookonce [command] [options]

Commands:
  serve      run the gateway (the default)
  check      read the configuration and say what is wrong with it
  schema     print the JSON Schema of the configuration, for editors
  explain    say what is known of an event, and what a delivery of it would now be: explain ROUTE ID…
  forget     have the next delivery of an event processed again: forget ROUTE ID…
  dlq        dead letters of async mode: dlq list, dlq show ID, dlq replay ID…, dlq discard ID…
  demo       show the main job on this machine, with a storm of deliveries
  version    print the version
  help       print this

Options:
  --config FILE   default: $HOOKONCE_CONFIG, else /etc/hookonce/config.yaml
  --key KEY       explain, forget: the event's Hookonce-Key, instead of its ids
  --json          explain, forget, dlq: answer in JSON
  --force         forget: even while an attempt is running; dlq replay: even if it has been done since
  --all           dlq replay, discard: all of them; or a part of them by
  --route NAME, --status CODE, --key KEY
  --limit N       dlq list: at most so many
  --body          dlq show: the body alone, byte for byte`;

type Command = (configPath: string, asked: Omit<Asked, 'command'>, dlq: AskedOfDlq) => Promise<number>;

const commands = new Map<string, Command>([
  ['serve', serve],
  ['check', async (path) => check(path)],
  ['schema', async () => say(JSON.stringify(configJsonSchema(senders.keys()), null, 2))],
  ['explain', async (path, asked) => await ask(path, { ...asked, command: 'explain' })],
  ['forget', async (path, asked) => await ask(path, { ...asked, command: 'forget' })],
  ['dlq', async (path, _, asked) => await deadLetters(path, asked)],
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
      key: { type: 'string' },
      json: { type: 'boolean', default: false },
      force: { type: 'boolean', default: false },
      route: { type: 'string' },
      status: { type: 'string' },
      limit: { type: 'string' },
      all: { type: 'boolean', default: false },
      body: { type: 'boolean', default: false },
    } as const;
    parsed = parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    return misused((error as Error).message.split('\n')[0]!);
  }
  const { values, positionals } = parsed;
  const { key, json, force, status, limit, all, body } = values;
  const name = values.help ? 'help' : values.version ? 'version' : (positionals[0] ?? 'serve');
  const command = commands.get(name);
  if (command === undefined) {
    const meant = nearest(name, commands.keys());
    return misused(`unknown command ${name}${meant === undefined ? '' : `; did you mean ${meant}?`}`);
  }
  const [, route, ...ids] = positionals;
  const asks = name === 'explain' || name === 'forget';
  if (asks && route === undefined) return misused(`${name} needs the name of a route, and the ids of an event`);
  const letters = name === 'dlq';
  if (!asks && !letters && route !== undefined) return misused(`${name} takes no argument ${route}`);
  const ofLetters = all || body || [values.route, status, limit].some((value) => value !== undefined);
  if (
    (!asks && !letters && (key !== undefined || json)) ||
    (name !== 'forget' && !letters && force) ||
    (!letters && ofLetters)
  )
    return misused(`${name} takes no such option`);
  if (values.config === '') return misused('--config needs the name of a file');
  return await command(
    values.config ?? (process.env['HOOKONCE_CONFIG'] || '/etc/hookonce/config.yaml'),
    { route: route ?? '', ids, key, json, force },
    { words: positionals.slice(1), route: values.route, status, key, limit, all, force, json, body },
  );
}

/** Runs until SIGTERM or SIGINT, then ends what is in flight. A second signal ends the process at once. */
async function serve(configPath: string): Promise<number> {
  // Heard from the start: a signal that comes while starting is obeyed once there is something to stop.
  const stopped = stopSignal();
  const first = read(configPath);
  const { loaded } = first;
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
  const apply = (now: Reading['loaded']): void => app.reload(configPath, now);
  using _reloading = reloadOnChange({ first, read: () => read(configPath), apply, clock: systemClock });
  await stopped;
  await app.drain();
  return 0;
}

function check(configPath: string): number {
  const { loaded } = read(configPath);
  return loaded.ok ? say(summary(loaded.config, loaded.warnings)) : complain(configPath, loaded.complaints);
}

/** Over connections of its own: it works beside a running gateway, and without one. */
async function ask(configPath: string, asked: Asked): Promise<number> {
  const { loaded } = read(configPath);
  if (!loaded.ok) return complain(configPath, loaded.complaints);
  const { config } = loaded;
  if (config.redis.nodes.length === 0 && !config.ledger)
    return misused(`redis.nodes: none: claims live in the gateway itself; ask its admin port, /-/${asked.command}`);
  const connect = async () => await (await import('./app.ts')).openOperator(config, systemClock);
  const { code, text } = await operate(asked, config, connect);
  return code === 2 ? misused(text) : say(text) || code;
}

/** Over a connection to the queue of its own; the voters are asked for what has been done since, where they can be. */
async function deadLetters(configPath: string, asked: AskedOfDlq): Promise<number> {
  const { loaded } = read(configPath);
  if (!loaded.ok) return complain(configPath, loaded.complaints);
  const { config } = loaded;
  if (!config.queue) return misused('queue: none: without async mode there are no dead letters');
  const connect = async () => await (await import('./app.ts')).openDeadLetters(config, systemClock);
  const shows = process.stderr.isTTY;
  const progress = (done: number, total: number): void => {
    if (shows) process.stderr.write(`\r${bar(done, total)}${done === total ? '\n' : ''}`);
  };
  const { code, text, raw } = await dlq(asked, connect, progress);
  if (raw !== undefined) await new Promise<void>((written) => process.stdout.write(raw, () => written()));
  else if (code === 2) return misused(text);
  else say(text);
  return code;
}

async function demo(): Promise<number> {
  const { runDemo } = await import('./demo/run.ts');
  const abort = new AbortController();
  void stopSignal().then(() => abort.abort());
  const program = { node: process.execPath, entry: resolve(process.argv[1]!) };
  return await runDemo({ program, clock: systemClock, print: (line) => void say(line), signal: abort.signal });
}

function read(configPath: string): Reading {
  return readConfig(configPath, { env: process.env, memoryLimit: memoryLimit() }, senders);
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
