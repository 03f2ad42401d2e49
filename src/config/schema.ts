/** The configuration file: every setting, its default, and what it is for. Strict: an unknown name is an error. */
import * as z from 'zod';
import { address } from './address.ts';
import { count, duration, filePath, matching, network, oneOf, secretRef, section, size } from './fields.ts';
import { ledgerSchema } from './schema-ledger.ts';
import { queueSchema } from './schema-queue.ts';
import { routeSchema } from './schema-route.ts';
import { metricsSchema, tracingSchema } from './schema-telling.ts';
import { upstreamSchema } from './schema-upstream.ts';

const host = () => matching(/^[^\s/]{1,255}$/, 'an IP address or a host name').prefault('0.0.0.0');
const port = () => count(0, 65535);

const listen = section({
  host: host().describe('Address to listen on.'),
  port: port().default(8081).describe('Port for deliveries; 0 takes any free one.'),
});

const admin = section({
  host: host().describe('Address to listen on.'),
  port: port().default(9090).describe('Port for /livez, /readyz, /metrics and /-/drain; 0 takes any free one.'),
  token: secretRef()
    .optional()
    .describe('Bearer token for /-/explain and /-/forget, by reference. Without one they are off.'),
});

const limits = section({
  body: size('1B', '1GiB').prefault('1MiB').describe('Largest body of a delivery; larger ones are answered 413.'),
  memory: size('1B', '1024GiB')
    .optional()
    .describe(
      "Buffered bodies in all, of deliveries (admitted before they are read) and of answers. Default: a fifth of the container's memory limit, 64MiB without one.",
    ),
  reply: size('0B', '1GiB')
    .prefault('1MiB')
    .describe('Largest answer of the application that is kept in memory on its way to the sender.'),
  headers: size('1KiB', '1MiB')
    .prefault('16KiB')
    .describe('Request line and header lines of one request; more are answered 431.'),
  inFlight: count(1, 1_000_000)
    .default(2048)
    .describe('Deliveries that are unanswered at the same time, waiting ones included; more are answered 503.'),
});

const redisAddress = () =>
  address(
    { redis: 6379, rediss: 6379 },
    'a URL without user and password: use username, and password: {file: …} or {env: …}',
  );

export const nodeSchema = section(
  {
    url: redisAddress()
      .optional()
      .describe('Address of one independent Redis: redis://host:port, or rediss://host:port for TLS.'),
    cluster: z
      .array(redisAddress())
      .min(1)
      .optional()
      .describe(
        'In place of url: some members of one Redis Cluster, which as a whole is one of the nodes. It finds the others by itself.',
      ),
    username: matching(/^[^\s]{1,128}$/, 'the name of a Redis user')
      .optional()
      .describe('ACL user; without one the default user.'),
    password: secretRef().optional().describe('Password of that user, by reference.'),
    tls: section({
      ca: filePath()
        .optional()
        .describe('PEM file with the certificates to trust; default: those that Node.js trusts.'),
      cert: filePath().optional().describe('PEM file with our own certificate, where the server asks for one.'),
      key: filePath().optional().describe('PEM file with its private key.'),
    })
      .optional()
      .describe('TLS settings of a rediss:// node.'),
  },
  { error: (issue) => (issue.code === 'invalid_type' ? 'a mapping, such as {url: redis://host:port}' : undefined) },
).meta(oneOf('url', 'cluster'));

const redis = section({
  timeout: duration('10ms', '1m').prefault('100ms').describe('Deadline of one round trip to one node.'),
  prefix: matching(/^[A-Za-z0-9_.:-]{1,32}$/, '1 to 32 letters, digits and _ . : -')
    .prefault('ho')
    .describe('First part of every key.'),
  nodes: z
    .array(nodeSchema)
    .default([])
    .describe(
      '1, 3, 5 or 7 independent Redis nodes. None: claims live in the memory of this one process, for trials only.',
    ),
  previous: z
    .array(nodeSchema)
    .default([])
    .describe(
      'Only while redis.nodes changes: the nodes until now. A claim then needs a majority of both lists, and the new ones learn from these.',
    ),
});

const claims = section({
  lockTtl: duration('1ms')
    .prefault('20s')
    .describe('Life of the lock of an event in flight; renewed every third of it.'),
  budget: duration('1ms').prefault('500ms').describe('Longest time that one claim may take in all.'),
  retention: duration('1ms', '3650d')
    .prefault('7d')
    .describe("How long a handled event is remembered; longer where a sender's retries come later."),
  maxHold: duration('1ms')
    .prefault('15m')
    .describe('Longest time that one attempt may hold its event, whatever happens.'),
  unknownHold: duration('1ms')
    .optional()
    .describe('How long an event stays locked when the application did not answer in time. Default: claims.lockTtl.'),
  relyOnWatchdog: z
    .boolean()
    .default(false)
    .describe('Allows upstream.timeout to exceed the life of a lock, which then lives on renewal alone.'),
  recoverAfter: duration('0ms')
    .prefault('60s')
    .describe(
      'How long a majority of the nodes must have been without its memory before the service goes on without it.',
    ),
  onMemoryLoss: z
    .enum(['recover', 'refuse'])
    .default('recover')
    .describe(
      'When a majority has lost its memory: go on after recoverAfter, or answer 503 until an operator has restored it.',
    ),
  resyncRate: count(1, 1_000_000)
    .default(20_000)
    .describe('Records per second that are copied to a node that lost its own.'),
  firstStart: z
    .enum(['wait', 'trust'])
    .default('wait')
    .describe('On empty Redis nodes: wait out one lock life, as they may have lost locks, or trust that they are new.'),
});

const drain = section({
  delay: duration('0ms')
    .prefault('5s')
    .describe('How long new deliveries are still taken after the signal to stop, until all of Kubernetes knows.'),
  grace: duration('1ms')
    .prefault('25s')
    .describe('Longest time from the signal to the end; keep it below terminationGracePeriodSeconds.'),
});

const readiness = section({
  requireQuorum: z
    .boolean()
    .default(false)
    .describe(
      'Not ready without a majority of the Redis nodes. As a sidecar that takes the whole pod out of its Services.',
    ),
});

const log = section({
  level: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least severe level that is written.'),
});

export const configSchema = section({
  service: matching(
    /^[a-z0-9]([a-z0-9._/-]{0,126}[a-z0-9])?$/,
    'a name such as payments/orders: lower-case letters, digits and . _ / - inside',
  )
    .optional()
    .describe('Gateways with the same name share events, and the queue. Required with redis.nodes and with ledger.'),
  listen: listen.prefault({}).describe('Where senders reach the gateway.'),
  admin: admin.prefault({}).describe('Where probes, metrics and operators reach it.'),
  upstream: upstreamSchema.prefault({}).describe('The application.'),
  limits: limits.prefault({}).describe('What the gateway keeps in memory.'),
  redis: redis.prefault({}).describe('The nodes that vote on claims.'),
  claims: claims.prefault({}).describe('How events are locked and remembered.'),
  routes: z.array(routeSchema).min(1).describe('One path and one sender each.'),
  unmatched: z
    .enum(['proxy', 'reject'])
    .default('proxy')
    .describe(
      'What happens to requests that are on no route, and to GET, HEAD and OPTIONS on one: passed through to the application as they are, or answered 404 and 405.',
    ),
  trustedProxies: z
    .array(network())
    .default([])
    .describe(
      'Proxies in front of the gateway. What others say in X-Forwarded-* is dropped then; without any it goes on as it came, and the gateway itself believes none of it.',
    ),
  queue: queueSchema.optional().describe('The queue of routes in async mode.'),
  ledger: ledgerSchema.optional().describe('A PostgreSQL table that has the final word on claims.'),
  readiness: readiness.prefault({}).describe('When /readyz says yes.'),
  drain: drain.prefault({}).describe('How the gateway stops.'),
  tracing: tracingSchema.prefault({}).describe('Traces of deliveries.'),
  metrics: metricsSchema.prefault({}).describe('What /metrics looks like.'),
  log: log.prefault({}).describe('Logging.'),
});

/** The settings as written, defaults filled in; durations in ms, sizes in bytes. */
export type Settings = z.output<typeof configSchema>;

export type NodeSettings = z.output<typeof nodeSchema>;
