/** The application, as written: where it is, how long it may take, and how much it gets at once. */
import * as z from 'zod';
import { applicationUrl } from './address.ts';
import { count, duration, section } from './fields.ts';

export const upstreamSchema = section({
  url: applicationUrl()
    .prefault('http://127.0.0.1:8080')
    .describe('The application: scheme, host and port, or unix:/path of its socket.'),
  host: z
    .enum(['preserve', 'upstream'])
    .default('preserve')
    .describe(
      'Host that the application sees: the one that was asked for, or its own, with X-Forwarded-Host beside it.',
    ),
  timeout: duration('1ms')
    .prefault('15s')
    .describe('Longest time for the application to answer in full, connecting included.'),
  connectTimeout: duration('1ms').prefault('1s').describe('Longest time to connect to the application.'),
  headersTimeout: duration('1ms')
    .optional()
    .describe('Longest time for the head of its answer, once connected. Default: upstream.timeout.'),
  keepAlive: duration('1ms', '10m')
    .prefault('1s')
    .describe(
      'How long an idle connection is kept; shorter than the application keeps it, unless it says how long in Keep-Alive.',
    ),
  maxInFlight: count(1, 100_000).default(128).describe('Deliveries that the application handles at the same time.'),
  maxWaiting: count(0, 1_000_000)
    .default(512)
    .describe('Deliveries that may wait for one of these places; more are answered 503.'),
  maxWait: duration('0ms').prefault('2s').describe('Longest time to wait for a place; then 503.'),
  maxProxied: count(0, 100_000)
    .optional()
    .describe(
      "Requests on no route that are passed through at the same time, streams and WebSockets included; more are answered 503. Default: one for each MiB of the container's memory limit, 1024 without one.",
    ),
});
