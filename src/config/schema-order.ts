/** The order of the events of one resource, as written. */
import * as z from 'zod';
import { headerName, matching, oneOf, section } from './fields.ts';

const exactlyOne = 'exactly one of header, json and form';

const place = () => ({
  header: headerName().optional().describe('Header that holds it.'),
  json: matching(/^(\/([^~/]|~[01])*)+$/, 'a JSON pointer such as /data/id')
    .optional()
    .describe('JSON pointer into the body.'),
  form: z.string().min(1).max(256).optional().describe('Field of a form-encoded body.'),
});

interface Place {
  readonly header?: string | undefined;
  readonly json?: string | undefined;
  readonly form?: string | undefined;
}

function one({ header, json, form }: Place, context: z.RefinementCtx): void {
  const given = [header, json, form].filter((value) => value !== undefined);
  if (given.length !== 1) context.addIssue({ code: 'custom', message: exactlyOne });
}

export const orderingSchema = section({
  resource: section(place())
    .superRefine(one)
    .meta({ ...oneOf('header', 'json', 'form'), examples: [{ json: '/data/id' }] })
    .optional()
    .describe('What names the resource. Default: what is known of the sender.'),
  version: section({
    ...place(),
    type: z
      .enum(['number', 'timestamp'])
      .describe('How versions compare: as decimal numbers, or as times of RFC 3339 with an offset.'),
  })
    .superRefine(one)
    .meta({ ...oneOf('header', 'json', 'form'), examples: [{ json: '/data/updated_at', type: 'timestamp' }] })
    .optional()
    .describe('Where its version is. Default: what is known of the sender.'),
  onStale: z
    .enum(['drop', 'mark'])
    .default('drop')
    .describe(
      'An event older than what the application has taken: answered with success and not forwarded, or forwarded with Hookonce-Stale: true.',
    ),
});
