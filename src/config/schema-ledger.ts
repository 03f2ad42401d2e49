/** The ledger, as written. */
import * as z from 'zod';
import { count, duration, filePath, secretRef, section } from './fields.ts';

export const ledgerSchema = section({
  url: secretRef().describe(
    'Where it is, by reference: postgres://user:password@host:port/database, with ?sslmode=require for TLS.',
  ),
  timeout: duration('10ms', '1m')
    .prefault('200ms')
    .describe('Longest time of one statement, the wait for a connection included; part of claims.budget.'),
  onDown: z
    .enum(['proceed', 'reject'])
    .optional()
    .describe(
      'While it does not answer: go on by the quorum and write the rows later, or answer 503. Default: proceed; without redis.nodes reject.',
    ),
  connections: count(1, 100).default(10).describe('Connections that one gateway opens at most.'),
  tls: section({
    ca: filePath().optional().describe('PEM file with the certificates to trust; default: those that Node.js trusts.'),
    cert: filePath().optional().describe('PEM file with our own certificate, where the server asks for one.'),
    key: filePath().optional().describe('PEM file with its private key.'),
  })
    .optional()
    .describe('TLS settings; tls: {} alone asks for TLS.'),
});

export type LedgerSettings = z.output<typeof ledgerSchema>;
