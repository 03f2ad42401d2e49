/** One route, as written. */
import * as z from 'zod';
import { orderingSchema } from './schema-order.ts';
import { count, duration, durationOrOff, headerName, matching, oneOf, secretRef, section, size } from './fields.ts';
import { verify } from './schema-verify.ts';

const pointer = (pattern: RegExp) => matching(pattern, 'a JSON pointer such as /data/id');

const identityPart = section({
  header: headerName().optional().describe('Header that names the event.'),
  json: pointer(/^(\/([^~/]|~[01])*)+$/)
    .optional()
    .describe('JSON pointer into the body.'),
  form: z.string().min(1).max(256).optional().describe('Field of a form-encoded body.'),
})
  .superRefine((part, context) => {
    const given = Object.values(part).filter((value) => value !== undefined);
    if (given.length !== 1) context.addIssue({ code: 'custom', message: 'exactly one of header, json and form' });
  })
  .meta({ ...oneOf('header', 'json', 'form'), examples: [{ header: 'x-event-id' }, { json: '/data/id' }] });

const identity = section({
  parts: z.array(identityPart).max(16).default([]).describe('What names the event; all parts together.'),
  bodyHash: z.boolean().default(false).describe('Takes the hash of the body as a part.'),
  missing: z
    .enum(['reject', 'forward', 'bodyHash'])
    .default('reject')
    .describe(
      'What happens to a delivery that lacks a part: answered 400, forwarded without a claim, or named by the hash of its body.',
    ),
  scope: z.enum(['route']).default('route').describe('Within what a name is unique.'),
});

const elements = z
  .union(
    [
      z.enum(['whole', 'each']),
      section({
        at: pointer(/^(\/([^~/]|~[01])*)*$/).describe(
          'JSON pointer to the list of events; an empty text for the body itself.',
        ),
        id: z
          .array(pointer(/^(\/([^~/]|~[01])*)+$/))
          .min(1)
          .max(16)
          .describe('JSON pointers from each element to what names it; all of them together.'),
      }),
    ],
    { error: 'whole, each, or a mapping of at (a JSON pointer to the list) and id (JSON pointers from its elements)' },
  )
  .describe(
    'A delivery with several events is one event (whole, the default), or each of its elements is one: those that were handled are left out of what is forwarded. each: where the sender is known to say what names them. {at: /items, id: [/id]}: the list, and what names its elements.',
  )
  .meta({ examples: ['each', { at: '/items', id: ['/id'] }] });

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

const limits = section({
  body: size('1B', '1GiB').optional().describe('Largest body of a delivery. Default: limits.body.'),
  inFlight: count(1, 1_000_000)
    .optional()
    .describe('Deliveries of this route that are unanswered at the same time. Default: as many as of all routes.'),
});

const handshake = section({
  token: secretRef().optional().describe('A secret for the handshake alone, such as the verify token of Meta.'),
  reveal: z
    .boolean()
    .default(false)
    .describe('Writes a secret that the sender hands over in its handshake to the log, such as the token of Notion.'),
});

export const routeSchema = section({
  name: matching(/^[a-z0-9-]{1,63}$/, '1 to 63 lower-case letters, digits and -').describe(
    'Name of the route in keys, metrics and logs. Another name is another memory.',
  ),
  path: z
    .string()
    .describe('Path that the sender posts to; /* at its end takes all that is below.')
    .meta({ examples: ['/webhooks/stripe', '/webhooks/orders/*'] }),
  sender: z
    .string()
    .optional()
    .describe('Sender whose signature, identity and habits are known.')
    .meta({ examples: ['stripe'] }),
  verify: verify.optional().describe('Instead of a sender: how deliveries are signed.'),
  secrets: z
    .array(secretRef())
    .max(16)
    .default([])
    .describe('Signing secrets, by reference; any of them may have signed.'),
  mode: z
    .enum(['sync', 'async'])
    .default('sync')
    .describe(
      'sync: the sender gets the answer of the application. async: the delivery is put in the queue and answered 202, and handed to the application afterwards.',
    ),
  publicUrl: z
    .string()
    .max(2048)
    .optional()
    .describe(
      'Where the sender posts to, byte for byte, for signatures that cover the URL: its origin alone, or the URL of this route.',
    ),
  tolerance: duration('1s')
    .optional()
    .describe("Largest distance of the signature's timestamp from now. Default: what is known of the sender."),
  handshake: handshake.optional().describe('How the sender makes sure of the endpoint.'),
  replayGuard: durationOrOff('1s', '3650d')
    .optional()
    .describe(
      'For how long content that was handled is not forwarded again under another id, which the signature does not cover. Default: as long as events are remembered where never two events of the sender have one content, otherwise off.',
    ),
  identity: identity.optional().describe('What names an event. Default: what is known of the sender.'),
  elements: elements.optional(),
  fingerprint: z
    .enum(['ignore', 'refuse', 'forward'])
    .default('ignore')
    .describe(
      'An event that was handled comes again with another body: a duplicate all the same, answered 422, or forwarded as an event of its own. Not for senders that count their attempts in the body.',
    ),
  ordering: orderingSchema
    .optional()
    .describe(
      'Events of one resource are forwarded one at a time, and an older one not after a newer one. Off unless it is there; {} takes what is known of the sender.',
    ),
  duplicate: duplicate.prefault({}).describe('How duplicates are answered.'),
  inFlight: inFlight.prefault({}).describe('What happens to copies of an event in flight.'),
  limits: limits.prefault({}).describe('Limits of this route alone.'),
  onUnavailable: z
    .enum(['reject', 'forward', 'ledger'])
    .default('reject')
    .describe(
      'Without a quorum of Redis nodes: answer 503, forward although it may be a duplicate, or let the ledger decide alone.',
    ),
  completeOn: z
    .array(count(300, 599))
    .max(300)
    .default([])
    .describe('Statuses of the application, beside 200 to 299, that mean: handled, do not send again.'),
  observe: z
    .boolean()
    .default(false)
    .describe(
      'Counts what would be stopped and stops nothing, wrong signatures included: it is forwarded with Hookonce-Observed. For trying a route out in front of an application that still verifies for itself.',
    ),
  retention: duration('1ms', '3650d')
    .optional()
    .describe(
      "How long a handled event is remembered. Default: claims.retention, or the sender's last retry where that is later.",
    ),
}).meta(oneOf('sender', 'verify'));

export type RouteSettings = z.output<typeof routeSchema>;
export type IdentitySettings = z.output<typeof identity>;
