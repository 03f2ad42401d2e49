/**
 * What operators do with dead letters, one or many: the same on the command line and on the admin port.
 *
 *     replay: dead ─▶ was the event done meanwhile? ─┬─ no ───────────────▶ back in the queue, all attempts before it
 *                                                    └─ yes ─┬─ not forced ▶ told so, and nothing else
 *                                                            └─ forced ────▶ back in the queue under a name of its own, so
 *                                                                            that it is forwarded once more, and once only
 *
 * Where nobody can tell (no quorum), it goes back, and the worker that takes it has the last word: one that
 * finds the event done before the replay makes it a dead letter again, which says why.
 */
import type { DeliveryKey } from './delivery.ts';
import type { DeadLetter, DeadLetters } from './dead-letters.ts';
import { workKey } from './work-key.ts';
import type { DoneView, Operator } from './operator.ts';

/** Which dead letters are meant; all of it together. */
export interface Filter {
  readonly route?: string | undefined;
  /** What the application answered last. */
  readonly status?: number | undefined;
  /** As the application was told it in `Hookonce-Key`. */
  readonly key?: string | undefined;
}

export type Replayed =
  | { readonly kind: 'replayed' }
  /** Not dead, or not any more: somebody else was faster. */
  | { readonly kind: 'gone' }
  | ({ readonly kind: 'done-before' } & DoneView);

/** How many went which way. */
export interface Counts {
  readonly replayed: number;
  readonly discarded: number;
  readonly 'done-before': number;
  readonly gone: number;
  /** Not what was meant. */
  readonly skipped: number;
}

/** Letters that are worked on at the same time. */
const AT_ONCE = 8;

function matches({ delivery, history }: DeadLetter, { route, status, key }: Filter): boolean {
  return (
    (route === undefined || delivery.route === route) &&
    (status === undefined || history.at(-1)?.status === status) &&
    (key === undefined || delivery.key === key)
  );
}

export async function replay(
  letters: DeadLetters,
  operator: Pick<Operator, 'explain'> | undefined,
  id: string,
  force: boolean,
): Promise<Replayed> {
  const letter = await letters.get(id);
  if (!letter) return { kind: 'gone' };
  const done = await doneOf(letter, operator);
  if (done && !force) return { kind: 'done-before', ...done };
  return { kind: await letters.replay(id, force ? `${id}/${letter.replays + 1}` : '') };
}

/** Rejects when the queue does not answer; what was done by then stays done. */
export async function forEach(
  letters: DeadLetters,
  ids: readonly string[],
  filter: Filter,
  act: (id: string) => Promise<keyof Counts>,
  onProgress: (done: number, total: number) => void = () => undefined,
): Promise<Counts> {
  const counts = { replayed: 0, discarded: 0, 'done-before': 0, gone: 0, skipped: 0 };
  const unfiltered = Object.values(filter).every((part) => part === undefined);
  let next = 0;
  let ended = 0;
  const go = async (): Promise<void> => {
    while (next < ids.length) {
      const id = ids[next]!;
      next += 1;
      const letter = unfiltered ? undefined : await letters.get(id);
      const became = unfiltered || (letter && matches(letter, filter)) ? await act(id) : letter ? 'skipped' : 'gone';
      counts[became] += 1;
      ended += 1;
      onProgress(ended, ids.length);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, go));
  return counts;
}

/** Those that match, the longest dead first, from the one after `after`; at most `limit`. */
export async function list(
  letters: DeadLetters,
  filter: Filter,
  limit: number,
  after?: string,
): Promise<{ readonly letters: readonly DeadLetter[]; readonly total: number; readonly more: boolean }> {
  const ids = await letters.ids();
  const found: DeadLetter[] = [];
  const start = after === undefined ? 0 : ids.indexOf(after) + 1;
  for (let i = start; i < ids.length; i += 1) {
    const letter = await letters.get(ids[i]!);
    if (!letter || !matches(letter, filter)) continue;
    if (found.length === limit) return { letters: found, total: ids.length, more: true };
    found.push(letter);
  }
  return { letters: found, total: ids.length, more: false };
}

async function doneOf(
  { delivery: { key } }: DeadLetter,
  operator: Pick<Operator, 'explain'> | undefined,
): Promise<DoneView | undefined> {
  if (!operator || key === undefined) return undefined;
  const { forecast } = await operator.explain(workKey({ id: key } as DeliveryKey));
  if (forecast.kind !== 'duplicate') return undefined;
  const { status, wallMs, traceId } = forecast;
  return { status, wallMs, traceId };
}
