/**
 * `hookonce demo`: the main job on real processes. Three redis-servers and two gateways where redis-server is
 * installed, otherwise one gateway with its embedded voter; an application that is sometimes slow and sometimes
 * fails; a storm of signed deliveries; in its middle, one Redis freezes for a while.
 */
import type { Clock } from '../core/ports.ts';
import { startApplication } from './application.ts';
import { freePort } from './free-port.ts';
import { startGateway, type Gateway, type Program } from './gateway.ts';
import { planEvents } from './plan.ts';
import { redisServerInstalled, startRedisServer, type RedisServer } from './redis-server.ts';
import { closingTable } from './report.ts';
import { runStorm, worker, type Storm } from './storm.ts';
import { Tally } from './tally.ts';

export interface DemoOptions {
  readonly program: Program;
  readonly clock: Clock;
  readonly print: (line: string) => void;
  /** Aborting it ends the demo early; everything that it started is stopped. */
  readonly signal: AbortSignal;
}

const secrets = { github: 'demo secret of github', stripe: 'demo secret of stripe' };
const eventCount = 300;
const frozenMs = 2_000;

/** The exit code: 0 when nothing was lost or handled twice, otherwise 1. */
export async function runDemo({ program, clock, print, signal }: DemoOptions): Promise<number> {
  await using stack = new AsyncDisposableStack();
  const events = planEvents(eventCount, clock);
  const tally = new Tally(events);
  const application = stack.use(await startApplication(worker(clock, tally, events), { port: await freePort() }));

  const withRedis = await redisServerInstalled();
  const nodes: RedisServer[] = [];
  for (let n = 0; n < (withRedis ? 3 : 0); n += 1) nodes.push(stack.use(await startRedisServer()));
  const given = { config: gatewayConfig(application.url, nodes), files: secretFiles() };
  const gateways: Gateway[] = [];
  for (let n = 0; n < (withRedis ? 2 : 1); n += 1) gateways.push(stack.use(await startGateway(program, clock, given)));

  print(
    withRedis
      ? `Three redis-servers (ports ${nodes.map(({ port }) => port).join(', ')}), two gateways, one application.`
      : 'redis-server is not installed: one gateway with its embedded voter, one application.',
  );
  const metrics = gateways.map(({ adminUrl }) => `${adminUrl}/metrics`);
  print(`While it runs: ${metrics.join('  ')}`);
  print(`A storm of ${eventCount} events from GitHub and Stripe, every one three times at once and then once more…`);

  const storm: Storm = {
    ...{ clock, tally, secrets, signal, copies: 3, atOnce: 40 },
    gateways: gateways.map(({ url }) => url),
  };
  const over = new AbortController();
  const freezing = freezeInTheMiddle(nodes.at(-1), {
    clock,
    print,
    tally,
    signal: AbortSignal.any([signal, over.signal]),
  });
  const startedMs = clock.now();
  await runStorm(storm, events);
  const seconds = (clock.now() - startedMs) / 1000;
  over.abort();
  await freezing;

  if (signal.aborted) return 1;
  const totals = tally.totals();
  for (const line of closingTable(totals, seconds, metrics)) print(line);
  return totals.lost === 0 && totals.twice === 0 ? 0 : 1;
}

type Freezing = Pick<DemoOptions, 'clock' | 'print' | 'signal'> & { readonly tally: Tally };

/** A third of the way through, one node stops answering, and comes back. The storm must not notice. */
async function freezeInTheMiddle(
  node: RedisServer | undefined,
  { clock, print, signal, tally }: Freezing,
): Promise<void> {
  if (node === undefined) return;
  while (tally.totals().forwarded < eventCount / 3 && !signal.aborted) await clock.sleep(20, signal);
  if (signal.aborted) return;
  node.freeze();
  print(`The Redis on port ${node.port} is frozen…`);
  await clock.sleep(frozenMs, signal);
  node.thaw();
  print('…and runs again.');
}

function gatewayConfig(upstream: string, nodes: readonly RedisServer[]): Record<string, unknown> {
  const route = (sender: string) => ({
    ...{ name: sender, path: `/webhooks/${sender}`, sender, secrets: [{ file: `./${sender}.secret` }] },
  });
  return {
    service: 'demo',
    upstream: { url: upstream },
    ...(nodes.length > 0 && { redis: { nodes: nodes.map(({ url }) => ({ url })) } }),
    claims: { firstStart: 'trust' },
    routes: [route('github'), route('stripe')],
    drain: { delay: '0s' },
    log: { level: 'warn' },
  };
}

function secretFiles(): Record<string, string> {
  return Object.fromEntries(Object.entries(secrets).map(([sender, secret]) => [`${sender}.secret`, secret]));
}
