/**
 * What stands in a file with faults: the sections and list entries that are right by themselves. Rules
 * are judged on these, so that one slip does not hide what else is wrong; a rule that needs a section
 * with a fault is not judged at all.
 */
import type * as z from 'zod';
import { configSchema, type Settings } from './schema.ts';

export type Standing = Partial<Settings>;

/** An entry of a list that is well formed, and where it stands. */
export interface Written<Item> {
  readonly index: number;
  readonly item: Item;
}

export function standingSections(raw: Readonly<Record<string, unknown>>): Standing {
  const entries = Object.entries(configSchema.shape).flatMap(([name, schema]) => {
    const parsed = schema.safeParse(raw[name]);
    return parsed.success ? [[name, parsed.data] as const] : [];
  });
  return Object.fromEntries(entries);
}

export function standingItems<Schema extends z.ZodType>(raw: unknown, schema: Schema): Written<z.output<Schema>>[] {
  return listOf(raw).flatMap((one, index) => {
    const parsed = schema.safeParse(one);
    return parsed.success ? [{ index, item: parsed.data }] : [];
  });
}

/** The entries of a list that are not well formed, as they are written. */
export function fallenItems(raw: unknown, schema: z.ZodType): Written<unknown>[] {
  return listOf(raw).flatMap((item, index) => (schema.safeParse(item).success ? [] : [{ index, item }]));
}

export function listOf(raw: unknown): readonly unknown[] {
  return Array.isArray(raw) ? raw : [];
}
