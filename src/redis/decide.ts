/**
 * Counting the votes of one claim round: pure (protocol section 3). Votes are counted by token, our own
 * included; errors and uncounted oks vote for nobody.
 *
 * In this order: done → a duplicate, once a quorum has answered and no answer shows a floor at or above it ·
 * a quorum of counted oks → won · one foreign token on a quorum → held · too few voters left that gave a
 * counted ok or a held → unavailable · nothing can be reached any more → undecided · otherwise: pending.
 */
import type { Answer } from './items.ts';

/**
 * One voter's vote: its answer, with `counted` already void where the voter has started anew since; `undefined`: none
 * yet. `learning`: an ok of a voter that does not count because it has not learnt its records yet.
 */
export type Vote = (Answer & { readonly learning?: boolean }) | undefined;

export type DoneAnswer = Extract<Answer, { status: 'done' }>;

/**
 * Voters of which a claim needs a majority, as places among all voters. There is one list, of all, unless the set of
 * voters changes: then the old list and the new one decide together, so that nobody who knows only one of them can win
 * beside (protocol section 7).
 */
export interface VoterList {
  readonly places: readonly number[];
  /**
   * Its voters may be new, and learn from the other list. A majority that is learning will do: it proves that this list
   * has never decided anything, and what it is told meanwhile it keeps.
   */
  readonly young: boolean;
}

export type Decision =
  | { readonly kind: 'pending' }
  | { readonly kind: 'done'; readonly done: DoneAnswer }
  /** `attempt`: the highest among all oks, counted or not. */
  | { readonly kind: 'won'; readonly attempt: number }
  | { readonly kind: 'held'; readonly leftMs: number; readonly unknown: boolean }
  | { readonly kind: 'unavailable' }
  /**
   * `holder`: the token that has a majority of one list and not of the other. It may be another claim that will not win
   * either; seen again in the next round, it is that of an owner who knows one list, as everybody else takes a new one.
   */
  | { readonly kind: 'undecided'; readonly leftMs: number; readonly holder: string | undefined };

export const quorumOf = (voters: number): number => Math.floor(voters / 2) + 1;

/** Whether something holds for a majority of every list; without lists, of all voters. */
export function byMajorities(
  voters: number,
  lists: readonly VoterList[] | undefined,
  holds: (place: number, young: boolean) => boolean,
): boolean {
  const all = lists ?? [{ places: Array.from({ length: voters }, (_, place) => place), young: false }];
  return all.every(
    ({ places, young }) => places.filter((place) => holds(place, young)).length >= quorumOf(places.length),
  );
}

export function decide(votes: readonly Vote[], lists?: readonly VoterList[]): Decision {
  if (lists === undefined) return verdict(votes, [tally(votes, false)]);
  const listed = ({ places, young }: VoterList): Tally =>
    tally(
      places.map((place) => votes[place]),
      young,
    );
  return verdict(votes, lists.map(listed));
}

/** The votes of one list, counted. */
interface Tally {
  readonly quorum: number;
  readonly pending: number;
  readonly answered: number;
  /** Those that can be added up: counted ones, or in a young list learning ones where they are more. */
  readonly oks: number;
  /** In a young list also those that cannot be added up now: a voter that has just learnt its records is neither this nor that for a moment. */
  readonly able: number;
  readonly holders: ReadonlyMap<string, Holder>;
  /** The one that has most. */
  readonly strongest: Holder;
  readonly attempt: number;
}

interface Holder {
  readonly token: string;
  votes: number;
  leftMs: number;
  unknown: boolean;
}

function tally(votes: readonly Vote[], young: boolean): Tally {
  let pending = 0;
  let granted = 0;
  let counted = 0;
  let learning = 0;
  let attempt = 0;
  let answered = 0;
  let held = 0;
  const holders = new Map<string, Holder>();
  let strongest: Holder = { token: '', votes: 0, leftMs: 0, unknown: false };
  for (const vote of votes) {
    if (vote === undefined) {
      pending += 1;
    } else if (vote.status === 'ok') {
      answered += 1;
      attempt = Math.max(attempt, vote.attempt);
      granted += 1;
      if (vote.counted) counted += 1;
      else if (vote.learning === true) learning += 1;
    } else if (vote.status === 'held') {
      answered += 1;
      held += 1;
      const holder = holders.get(vote.token) ?? { token: vote.token, votes: 0, leftMs: 0, unknown: false };
      holder.votes += 1;
      holder.leftMs = Math.max(holder.leftMs, vote.leftMs);
      holder.unknown ||= vote.unknown;
      holders.set(vote.token, holder);
      if (holder.votes > strongest.votes) strongest = holder;
    } else if (vote.status === 'done') {
      answered += 1;
    }
  }
  const oks = young ? Math.max(counted, learning) : counted;
  const able = held + (young ? granted : counted);
  return { quorum: quorumOf(votes.length), pending, answered, oks, able, holders, strongest, attempt };
}

function verdict(votes: readonly Vote[], lists: readonly Tally[]): Decision {
  const done = liveDone(votes);
  if (done) {
    const heard = lists.every(({ answered, pending, quorum }) => answered >= quorum || pending === 0);
    return heard ? { kind: 'done', done } : { kind: 'pending' };
  }
  if (lists.every(({ oks, quorum }) => oks >= quorum))
    return { kind: 'won', attempt: Math.max(...lists.map(({ attempt }) => attempt)) };
  const holder = lists.find((list) => list.strongest.votes >= list.quorum)?.strongest;
  if (holder && lists.every((list) => (list.holders.get(holder.token)?.votes ?? 0) >= list.quorum))
    return { kind: 'held', leftMs: holder.leftMs, unknown: holder.unknown };
  if (lists.some(({ able, pending, quorum }) => able + pending < quorum)) return { kind: 'unavailable' };
  const winnable = lists.every(({ oks, pending, quorum }) => oks + pending >= quorum);
  const holdable = lists.every(({ strongest, pending, quorum }) => strongest.votes + pending >= quorum);
  if (winnable || (holdable && lists.some(({ pending }) => pending > 0))) return { kind: 'pending' };
  const leftMs = Math.max(...lists.map(({ strongest }) => strongest.leftMs));
  return { kind: 'undecided', leftMs, holder: holder?.token };
}

/** The done record among the votes that no floor has made void, the newest where there are several. */
export function liveDone(votes: readonly Vote[]): DoneAnswer | undefined {
  let floor = 0;
  let newest: DoneAnswer | undefined;
  for (const vote of votes) {
    if (vote === undefined || !('floor' in vote)) continue;
    floor = Math.max(floor, vote.floor);
    if (vote.status === 'done' && vote.attempt > (newest?.attempt ?? 0)) newest = vote;
  }
  return newest && newest.attempt > floor ? newest : undefined;
}
