/** One route, as written. */
import * as z from 'zod';
import { count, duration, headerName, matching, secretRef, section } from './fields.ts';

const affix = () => z.string().max(64);

const verify = section({
  scheme: z.enum(['hmac-sha256', 'none']).describe('How deliveries are signed; none: anybody may post.'),
  header: headerName().optional().describe('Header that holds the signature.'),
  encoding: z.enum(['hex', 'base64']).default('hex').describe('How the signature is written.'),
  prefix: affix().default('').describe('Text before the signature, such as sha256=.'),
  separator: affix()
    .min(1)
    .optional()
    .describe('Text between several items in the header; without it the whole value is one.'),
  signed: z
    .string()
    .min(1)
    .max(256)
    .default('{body}')
    .describe('What is signed: text around {body}, {timestamp} and {id}.'),
  id: headerName().optional().describe('Header of the signed message id, where signed names {id}.'),
  timestamp: section({
    header: headerName().optional().describe('Header that holds the time of signing.'),
    prefix: affix()
      .min(1)
      .optional()
      .describe('Instead of a header: text before the time among the items of the signature header, such as t=.'),
    unit: z.enum(['s', 'ms']).default('s').describe('Seconds or milliseconds since 1970.'),
    tolerance: duration('1s').prefault('5m').describe('Largest distance from now, to either side.'),
  })
    .optional()
    .describe('Time of signing, where signed names {timestamp}.'),
});

const identityPart = section({
  header: headerName().optional().describe('Header that names the event.'),
  json: matching(/^(\/([^~/]|~[01])*)+$/, 'a JSON pointer such as /data/id')
    .optional()
    .describe('JSON pointer into the body.'),
  form: z.string().min(1).max(256).optional().describe('Field of a form-encoded body.'),
}).superRefine((part, context) => {
  const given = Object.values(part).filter((value) => value !== undefined);
  if (given.length !== 1) context.addIssue({ code: 'custom', message: 'exactly one of header, json and form' });
});

const identity = section({
  parts: z.array(identityPart).max(16).default([]).describe('What names the event; all parts together.'),
  bodyHash: z.boolean().default(false).describe('Takes the hash of the body as a part.'),
  missing: z.enum(['reject']).default('reject').describe('What happens to a delivery that lacks a part: answered 400.'),
  scope: z.enum(['route']).default('route').describe('Within what a name is unique.'),
});

const duplicate = section({
  reply: z
    .enum(['empty', 'stored'])
    .default('empty')
    .describe('Answer duplicates with no more than a status, or with what the application answered first.'),
  status: count(200, 299).optional().describe('Status for duplicates. Default: what the sender takes for success.'),
});

const inFlight = section({
  policy: z
    .enum(['wait', 'reject', 'accept'])
    .default('wait')
    .describe(
      'A copy of an event in flight waits for the first one, is answered 503, or is answered with success although the first may yet fail.',
    ),
  wait: duration('1ms')
    .optional()
    .describe(
      "Longest wait; always shorter than the sender's time limit. Default: 4s, or less where the sender is impatient.",
    ),
  maxWaiters: count(1, 10_000).default(32).describe('Copies of one event that may wait; more are answered 503.'),
});

export const routeSchema = section({
  name: matching(/^[a-z0-9-]{1,63}$/, '1 to 63 lower-case letters, digits and -').describe(
    'Name of the route in keys, metrics and logs. Another name is another memory.',
  ),
  path: z.string().describe('Path that the sender posts to; /* at its end takes all that is below.'),
  sender: z.string().optional().describe('Sender whose signature, identity and habits are known.'),
  verify: verify.optional().describe('Instead of a sender: how deliveries are signed.'),
  secrets: z
    .array(secretRef())
    .max(16)
    .default([])
    .describe('Signing secrets, by reference; any of them may have signed.'),
  identity: identity.optional().describe('What names an event. Default: what is known of the sender.'),
  duplicate: duplicate.prefault({}).describe('How duplicates are answered.'),
  inFlight: inFlight.prefault({}).describe('What happens to copies of an event in flight.'),
  onUnavailable: z
    .enum(['reject', 'forward'])
    .default('reject')
    .describe('Without a quorum of Redis nodes: answer 503, or forward although it may be a duplicate.'),
  completeOn: z
    .array(count(300, 599))
    .max(300)
    .default([])
    .describe('Statuses of the application, beside 200 to 299, that mean: handled, do not send again.'),
  retention: duration('1ms', '3650d')
    .optional()
    .describe(
      "How long a handled event is remembered. Default: claims.retention, or the sender's last retry where that is later.",
    ),
});

export type RouteSettings = z.output<typeof routeSchema>;
export type VerifySettings = z.output<typeof verify>;
export type IdentitySettings = z.output<typeof identity>;
