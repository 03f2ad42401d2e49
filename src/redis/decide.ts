/**
 * Counting the votes of one claim round: pure (protocol section 3). Votes are counted by token, our own
 * included; errors and uncounted oks vote for nobody.
 *
 * In this order: done → a duplicate, once a quorum has answered and no answer shows a floor at or above it ·
 * a quorum of counted oks → won · one foreign token on a quorum → held · too few voters left that gave a
 * counted ok or a held → unavailable · nothing can be reached any more → undecided · otherwise: pending.
 */
import type { Answer } from './items.ts';

/** One voter's vote: its answer, with `counted` already void where the voter has started anew since; `undefined`: none yet. */
export type Vote = Answer | undefined;

export type DoneAnswer = Extract<Answer, { status: 'done' }>;

export type Decision =
  | { readonly kind: 'pending' }
  | { readonly kind: 'done'; readonly done: DoneAnswer }
  /** `attempt`: the highest among all oks, counted or not. */
  | { readonly kind: 'won'; readonly attempt: number }
  | { readonly kind: 'held'; readonly leftMs: number; readonly unknown: boolean }
  | { readonly kind: 'unavailable' }
  | { readonly kind: 'undecided'; readonly leftMs: number };

export const quorumOf = (voters: number): number => Math.floor(voters / 2) + 1;

export function decide(votes: readonly Vote[]): Decision {
  const quorum = quorumOf(votes.length);
  let pending = 0;
  let oks = 0;
  let attempt = 0;
  let answered = 0;
  const holders = new Map<string, { votes: number; leftMs: number; unknown: boolean }>();
  for (const vote of votes) {
    if (vote === undefined) {
      pending += 1;
    } else if (vote.status === 'ok') {
      answered += 1;
      attempt = Math.max(attempt, vote.attempt);
      if (vote.counted) oks += 1;
    } else if (vote.status === 'held') {
      answered += 1;
      const holder = holders.get(vote.token) ?? { votes: 0, leftMs: 0, unknown: false };
      holder.votes += 1;
      holder.leftMs = Math.max(holder.leftMs, vote.leftMs);
      holder.unknown ||= vote.unknown;
      holders.set(vote.token, holder);
    } else if (vote.status === 'done') {
      answered += 1;
    }
  }

  const done = liveDone(votes);
  if (done) return answered >= quorum || pending === 0 ? { kind: 'done', done } : { kind: 'pending' };
  if (oks >= quorum) return { kind: 'won', attempt };
  let strongest = { votes: 0, leftMs: 0, unknown: false };
  let heldVotes = 0;
  for (const holder of holders.values()) {
    heldVotes += holder.votes;
    if (holder.votes > strongest.votes) strongest = holder;
  }
  if (strongest.votes >= quorum) return { kind: 'held', leftMs: strongest.leftMs, unknown: strongest.unknown };
  if (oks + heldVotes + pending < quorum) return { kind: 'unavailable' };
  if (oks + pending >= quorum || strongest.votes + pending >= quorum) return { kind: 'pending' };
  return { kind: 'undecided', leftMs: strongest.leftMs };
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
