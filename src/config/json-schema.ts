/** The configuration's JSON Schema, for editors, for the chart's values, and for the reference in docs/. */
import * as z from 'zod';
import { configSchema } from './schema.ts';

export type JsonSchema = z.core.JSONSchema.JSONSchema;

/** Draft 7, which editors and Helm both read. `senders`: the names that are known. */
export function configJsonSchema(senders: Iterable<string>): JsonSchema {
  const { $schema, ...schema } = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-7' }) as JsonSchema;
  const route = (schema.properties!['routes'] as { items: JsonSchema }).items;
  Object.assign(route.properties!['sender']!, { enum: [...senders] });
  return { $schema: $schema!, title: 'Configuration of hookonce', ...schema };
}
