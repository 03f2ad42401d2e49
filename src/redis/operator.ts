/** One event as the voters know it, for operators: explain and forget (protocol section 8). */
import type { DeliveryKey } from '../core/delivery.ts';
import type { Explanation, Forecast, Forgetting, LockView, Operator, RecordView, VoterView } from '../core/operator.ts';
import type { Reply } from './batch.ts';
import { byMajorities, decide, type Vote, type VoterList } from './decide.ts';
import { decodeDone } from './done.ts';
import type { Answer } from './items.ts';
import type { Voter } from './voter.ts';

export interface OperatorOptions {
  readonly lockTtlMs: number;
  readonly maxHoldMs: number;
}

/** What a voter said of the event's lock and record, in one batch. */
interface Look {
  readonly voter: Voter;
  readonly lock: Reply & { status: 'lock' };
  readonly record: Reply & { status: 'record' };
  /** The vote that a claim would get now. */
  readonly vote: Answer & { readonly learning?: boolean };
}

interface Silence {
  readonly voter: Voter;
  readonly why: string;
}

export class VoterOperator implements Operator {
  readonly #voters: readonly Voter[];
  readonly #options: OperatorOptions;
  readonly #lists: readonly VoterList[] | undefined;

  /** `lists`: while the set of voters changes. */
  constructor(voters: readonly Voter[], options: OperatorOptions, lists?: readonly VoterList[]) {
    this.#voters = voters;
    this.#options = options;
    this.#lists = lists;
  }

  async explain(key: DeliveryKey): Promise<Explanation> {
    const looks = await this.#look(key.id);
    return { voters: looks.map(viewOf), forecast: forecast(looks, this.#lists) };
  }

  /**
   * Deletes nothing: writes the highest attempt as the floor on every voter, so that what is done at or below it is
   * void wherever it turns up again. Less than a majority would not do that, and nothing is written then.
   */
  async forget({ id }: DeliveryKey, retentionMs: number, force: boolean): Promise<Forgetting> {
    const looks = await this.#look(id);
    const answered = looks.filter(isLook);
    const silent = looks.filter((look) => !isLook(look));
    const known = byMajorities(looks.length, this.#lists, (place) => isLook(looks[place]!));
    if (!known) return { kind: 'incomplete', remember: looks.map(nameOf) };
    const locks = answered.filter(({ lock }) => lock.token !== '');
    if (locks.length > 0 && !force)
      return { kind: 'in-progress', leftMs: Math.max(...locks.map(({ lock }) => lock.leftMs)) };
    const attempt = Math.max(...answered.map(({ record }) => record.attempt));
    if (attempt === 0)
      return silent.length > 0 ? { kind: 'incomplete', remember: silent.map(nameOf) } : { kind: 'unknown' };

    const recordMs = Math.max(retentionMs, this.#options.maxHoldMs + this.#options.lockTtlMs);
    const written = await Promise.all(
      this.#voters.map(async (voter) => {
        const reply = await voter.ask({ op: 'learn', id, done: false, attempt, floor: attempt, content: '', recordMs });
        if (reply.status === 'ok' && voter.counts(reply, id)) return [];
        return [{ node: voter.name, why: whyOf(voter, reply) }];
      }),
    );
    const remember = written.flat();
    return remember.length > 0
      ? { kind: 'incomplete', remember }
      : { kind: 'forgotten', attempt, running: locks.length > 0 };
  }

  async #look(id: string): Promise<(Look | Silence)[]> {
    return await Promise.all(
      this.#voters.map(async (voter) => {
        const [lock, record] = await Promise.all([voter.ask({ op: 'look', id }), voter.ask({ op: 'read', id })]);
        if (lock.status === 'lock' && record.status === 'record')
          return { voter, lock, record, vote: voteOf(voter, id, lock, record) };
        return { voter, why: whyOf(voter, lock.status === 'lock' ? record : lock) };
      }),
    );
  }
}

const isLook = (look: Look | Silence): look is Look => 'vote' in look;
/** Where nobody was asked, what was wrong when somebody was. */
function whyOf(voter: Voter, reply: Reply): string {
  if (reply.status !== 'error') return reply.status;
  if (reply.message !== 'down' && reply.message !== 'skipped') return reply.message;
  return `${reply.message}, ${voter.trouble}`;
}
const nameOf = (look: Look | Silence): { node: string; why: string } => ({
  node: look.voter.name,
  why: isLook(look) ? 'not asked' : look.why,
});

function voteOf(voter: Voter, id: string, lock: Look['lock'], record: Look['record']): Look['vote'] {
  if (record.boot === '') return { status: 'no-marker' };
  if (record.done) return { ...record, status: 'done' };
  if (lock.token !== '') return { ...lock, status: 'held', floor: record.floor };
  const counted = voter.counts(record, id);
  return {
    status: 'ok',
    counted,
    learning: voter.isLearning(record, id),
    attempt: record.attempt + 1,
    floor: record.floor,
  };
}

/** What a delivery would find, by the same count that decides a claim. */
function forecast(looks: readonly (Look | Silence)[], lists: readonly VoterList[] | undefined): Forecast {
  const votes = looks.map((look): Vote => (isLook(look) ? look.vote : { status: 'error', message: look.why }));
  const decision = decide(votes, lists);
  switch (decision.kind) {
    case 'done': {
      const { status, wallMs, traceId } = decodeDone(decision.done.content);
      return { kind: 'duplicate', attempt: decision.done.attempt, status, wallMs, traceId };
    }
    case 'won':
      return { kind: 'forwarded', attempt: decision.attempt };
    case 'held':
      return { kind: 'in-progress', unknown: decision.unknown, leftMs: decision.leftMs };
    case 'unavailable':
      return decision;
    case 'undecided':
      return { kind: 'split', leftMs: decision.leftMs };
    case 'pending':
      throw new Error('votes were counted that nobody has cast');
  }
}

function viewOf(look: Look | Silence): VoterView {
  const node = look.voter.name;
  if (!isLook(look)) return { node, answer: 'none', why: look.why };
  const { status } = look.vote;
  const answer = status === 'done' || status === 'held' || status === 'ok' ? status : 'no marker';
  return {
    ...{ node, answer },
    hold: look.voter.hold,
    boot: look.record.boot,
    lock: lockView(look.lock),
    record: recordView(look.record),
  };
}

/** The beginning of the token says who holds it, and is no token. */
function lockView({ token, unknown, leftMs }: Look['lock']): LockView | undefined {
  return token === '' ? undefined : { holder: token.slice(0, 8), unknown, leftMs };
}

function recordView({ attempt, floor, leftMs, done, content }: Look['record']): RecordView | undefined {
  if (leftMs < 0) return undefined;
  const { status, wallMs, traceId } = decodeDone(content);
  return { attempt, floor, leftMs, done: done ? { status, wallMs, traceId } : undefined };
}
