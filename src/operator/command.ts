/** `hookonce explain` and `hookonce forget`: what was asked on the command line, and what is said to it. */
import { findEvent, type Given, type GivenEvent } from '../core/given-ids.ts';
import { forgettingInWords, summaryInWords } from '../core/in-words.ts';
import { leadsTo } from '../core/leads.ts';
import type { Operator } from '../core/operator.ts';
import type { Route } from '../core/route.ts';
import { table } from './table.ts';

export interface Asked extends Given {
  readonly command: 'explain' | 'forget';
  readonly json: boolean;
  readonly force: boolean;
}

/** `code`: 0 done, 1 not done, 2 asked wrongly. */
export interface Said {
  readonly code: 0 | 1 | 2;
  readonly text: string;
}

/** Connects only for an event that was named properly. */
export async function operate(
  asked: Asked,
  config: { readonly service: string; readonly routes: readonly Route[] },
  connect: () => Promise<Operator & AsyncDisposable>,
): Promise<Said> {
  const event = findEvent(config.service, config.routes, asked);
  if (typeof event === 'string') return { code: 2, text: event };
  await using operator = await connect();
  return asked.command === 'explain' ? await explain(asked, event, operator) : await forget(asked, event, operator);
}

async function explain({ json }: Asked, event: GivenEvent, operator: Operator): Promise<Said> {
  const explanation = await operator.explain(event.key);
  const { route, key } = event;
  const summary = summaryInWords(explanation, route);
  const text = json
    ? JSON.stringify({ route: route.name, key: key.id, ...explanation, leads: leadsTo(key, explanation), summary })
    : table(event, explanation);
  return { code: 0, text };
}

async function forget({ json, force }: Asked, { route, key }: GivenEvent, operator: Operator): Promise<Said> {
  const result = await operator.forget(key, route.retentionMs, force);
  const summary = forgettingInWords(result);
  const text = json ? JSON.stringify({ route: route.name, key: key.id, ...result, summary }) : summary;
  return { code: result.kind === 'forgotten' ? 0 : 1, text };
}
