/** The queue of async mode, as written. */
import * as z from 'zod';
import { count, duration, filePath, matching, secretRef, section } from './fields.ts';

const urlForm =
  'a URL such as redis://host:port, rediss://host:port or postgres://host:port/database, or a reference {file: …} or {env: …} to one';

export const queueSchema = section({
  url: z
    .union([z.string(), secretRef()], { error: urlForm })
    .describe(
      'Where accepted deliveries are kept: redis://host:port, rediss://host:port or postgres://host:port/database. A reference to one may hold user and password as well.',
    ),
  username: matching(/^[^\s]{1,128}$/, 'the name of a user')
    .optional()
    .describe('User of Redis or PostgreSQL.'),
  password: secretRef().optional().describe('Password of that user, by reference.'),
  tls: section({
    ca: filePath().optional().describe('PEM file with the certificates to trust; default: those that Node.js trusts.'),
    cert: filePath().optional().describe('PEM file with our own certificate, where the server asks for one.'),
    key: filePath().optional().describe('PEM file with its private key.'),
  })
    .optional()
    .describe('TLS towards rediss:// or postgres://; for PostgreSQL tls: {} alone asks for it.'),
  timeout: duration('10ms', '1m')
    .prefault('1s')
    .describe('Longest time to put one delivery into the queue; then 503, and the sender comes again.'),
  concurrency: count(1, 10_000)
    .default(16)
    .describe('Jobs that one gateway hands to its application at the same time.'),
  attempts: count(1, 1000)
    .default(20)
    .describe('Attempts before an event becomes a dead letter. Waiting for another holder or for a place uses none.'),
  backoff: section({
    first: duration('1ms', '1d')
      .prefault('1s')
      .describe('Pause after the first failure; each one after it is twice as long.'),
    max: duration('1ms', '7d')
      .prefault('1h')
      .describe('Longest pause between two attempts; Retry-After may ask for up to 1d.'),
  })
    .prefault({})
    .describe('Pauses between attempts, with a jitter of a fifth to either side.'),
  nonRetryable: z
    .array(count(300, 599))
    .max(300)
    .default([])
    .describe('Statuses of the application that make a dead letter at once.'),
  deadRetention: duration('1m', '3650d').prefault('30d').describe('How long dead letters are kept.'),
  page: z
    .boolean()
    .default(false)
    .describe(
      'A page about the queue on the admin port, /-/queue/: without bodies and headers, and read-only without admin.token.',
    ),
});

export type QueueSettings = z.output<typeof queueSchema>;
