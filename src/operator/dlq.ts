/**
 * `hookonce dlq …`: dead letters on the command line.
 *
 *     dlq list [--route NAME] [--status CODE] [--key KEY] [--limit N] [--json]
 *     dlq show ID [--json | --body]
 *     dlq replay ID… | --all | a filter     [--force] [--json]
 *     dlq discard ID… | --all | a filter    [--json]
 */
import type { DeadLetters } from '../core/dead-letters.ts';
import {
  briefly,
  countsInWords,
  fully,
  letterInWords,
  lettersInWords,
  replayedInWords,
} from '../core/letter-in-words.ts';
import type { Operator } from '../core/operator.ts';
import { forEach, list, replay, type Counts, type Filter } from '../core/redelivery.ts';
import type { Said } from './command.ts';

export interface AskedOfDlq {
  /** What stands after `dlq`: the action, then ids. */
  readonly words: readonly string[];
  readonly route: string | undefined;
  readonly status: string | undefined;
  readonly key: string | undefined;
  readonly limit: string | undefined;
  readonly all: boolean;
  readonly force: boolean;
  readonly json: boolean;
  readonly body: boolean;
}

export interface Office extends AsyncDisposable {
  readonly letters: DeadLetters;
  /** Undefined where the voters cannot be asked. */
  readonly operator: Pick<Operator, 'explain'> | undefined;
}

/** `raw`: bytes to be written as they are, instead of the text. */
export type SaidOfDlq = Said & { readonly raw?: Buffer };

const ACTIONS = ['list', 'show', 'replay', 'discard'] as const;
const LISTED = 100;

/** Connects only for what was asked properly. `progress` hears how far work on many has come. */
export async function dlq(
  asked: AskedOfDlq,
  connect: () => Promise<Office>,
  progress: (done: number, total: number) => void,
): Promise<SaidOfDlq> {
  const [word, ...ids] = asked.words;
  const action = ACTIONS.find((one) => one === word);
  const wrong = action === undefined ? `dlq needs one of ${ACTIONS.join(', ')}` : misuse(action, ids, asked);
  if (action === undefined || wrong !== undefined) return { code: 2, text: wrong! };
  await using office = await connect();
  try {
    switch (action) {
      case 'list':
        return await listed(office, asked);
      case 'show':
        return await shown(office, ids[0]!, asked);
      case 'replay':
      case 'discard':
        return await acted(action, office, ids, asked, progress);
    }
  } catch (error) {
    return { code: 1, text: `the queue does not answer: ${error instanceof Error ? error.message : String(error)}` };
  }
}

function misuse(action: (typeof ACTIONS)[number], ids: readonly string[], asked: AskedOfDlq): string | undefined {
  const filtered = [asked.route, asked.status, asked.key].some((part) => part !== undefined);
  if (asked.status !== undefined && !/^[1-5]\d\d$/.test(asked.status)) return '--status needs a status such as 500';
  if (asked.limit !== undefined && !/^[1-9]\d{0,5}$/.test(asked.limit)) return '--limit needs a number';
  if (asked.body && action !== 'show') return '--body is for dlq show';
  if (asked.force && action !== 'replay') return '--force is for dlq replay';
  if (asked.limit !== undefined && action !== 'list') return '--limit is for dlq list';
  if (asked.all && (action === 'list' || action === 'show')) return `--all is for dlq replay and discard`;
  switch (action) {
    case 'list':
      return ids.length > 0 ? 'dlq list takes no ids' : undefined;
    case 'show':
      return ids.length !== 1 || filtered ? 'dlq show needs one id' : undefined;
    case 'replay':
    case 'discard':
      if (ids.length > 0 && (asked.all || filtered)) return 'give either ids, or --all, or a filter';
      return ids.length === 0 && !asked.all && !filtered
        ? `dlq ${action} needs ids, --all, or a filter: --route, --status, --key`
        : undefined;
  }
}

const filterOf = ({ route, status, key }: AskedOfDlq): Filter => ({
  ...{ route, key },
  status: status === undefined ? undefined : Number(status),
});

async function listed({ letters }: Office, asked: AskedOfDlq): Promise<SaidOfDlq> {
  const found = await list(letters, filterOf(asked), Number(asked.limit ?? LISTED));
  const text = asked.json
    ? JSON.stringify({ ...found, letters: found.letters.map(briefly) })
    : lettersInWords(found.letters, found.total, found.more);
  return { code: 0, text };
}

async function shown({ letters }: Office, id: string, { json, body }: AskedOfDlq): Promise<SaidOfDlq> {
  const letter = await letters.get(id);
  if (!letter) return { code: 1, text: `${id}: no dead letter, or not any more` };
  if (body) return { code: 0, text: '', raw: letter.delivery.body };
  return { code: 0, text: json ? JSON.stringify(fully(letter)) : letterInWords(letter, legible) };
}

/** One by one each is told; of many, how many went which way. */
async function acted(
  action: 'replay' | 'discard',
  { letters, operator }: Office,
  ids: readonly string[],
  asked: AskedOfDlq,
  progress: (done: number, total: number) => void,
): Promise<SaidOfDlq> {
  const lines: string[] = [];
  const act = async (id: string): Promise<keyof Counts> => {
    if (action === 'discard') {
      const result = await letters.discard(id);
      lines.push(`${id}: ${result === 'gone' ? 'no dead letter, or not any more' : result}.`);
      return result;
    }
    const replayed = await replay(letters, operator, id, asked.force);
    lines.push(replayedInWords(id, replayed));
    return replayed.kind;
  };
  const many = ids.length === 0;
  const counts = await forEach(
    letters,
    many ? await letters.ids() : ids,
    filterOf(asked),
    act,
    many ? progress : undefined,
  );
  const failed = counts['done-before'] > 0 || (!many && counts.gone > 0);
  const text = asked.json ? JSON.stringify(counts) : many ? countsInWords(counts) : lines.join('\n');
  return { code: failed ? 1 : 0, text };
}

/** Text as it is; of anything else the first bytes in hex. */
function legible(body: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    return `${body.length} bytes that are no text, ${body.subarray(0, 64).toString('hex')}… (--body writes them as they are)`;
  }
}

/** `replaying  [#####.....] 512 of 1000`. */
export function bar(done: number, total: number, width = 30): string {
  const filled = total === 0 ? width : Math.floor((done * width) / total);
  return `[${'#'.repeat(filled)}${'.'.repeat(width - filled)}] ${done} of ${total}`;
}
