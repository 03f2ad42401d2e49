/** Versions of resources on a quorum of voters, kept and taught like records. */
import type { VersionChange, Versions } from '../core/ports.ts';
import { gather, type Ballots } from './ballots.ts';
import type { Reply } from './batch.ts';
import type { Recent } from './recent.ts';
import type { Voter } from './voter.ts';

/** Resolves with what a quorum that counts knew before; later changes meet every one that had a quorum. */
export async function orderOnQuorum(
  voters: readonly Voter[],
  ballots: Ballots,
  recent: Recent,
  { id, applied, pending, instead, keepMs: recordMs }: VersionChange,
): Promise<Versions | 'unavailable'> {
  const replies: (Reply | undefined)[] = voters.map(() => undefined);
  const asked = voters.map(async (voter, place) => {
    replies[place] = await voter.ask({ op: 'order', id, applied, pending, instead, recordMs });
  });
  const counts = (place: number, learning: boolean): boolean => {
    const reply = replies[place];
    if (reply?.status !== 'versions') return false;
    const voter = voters[place]!;
    return learning ? voter.isLearning(reply, id) : reply.counted && voter.counts(reply, id);
  };
  const enough = await gather(asked, () =>
    ballots.byMajorities((place, young) => counts(place, false) || (young && counts(place, true))) ? true : undefined,
  );
  if (!enough) return 'unavailable';
  const known = replies.flatMap((reply) => (reply?.status === 'versions' ? [reply] : []));
  const before = {
    applied: newest(known.map((each) => each.applied)),
    pending: newest(known.map((each) => each.pending)),
  };
  const keeps = instead === '' ? pending < before.pending : before.pending !== instead;
  recent.wrote({
    ...{ op: 'order', id, recordMs, instead: '' },
    applied: newest([before.applied, applied]),
    pending: keeps ? before.pending : pending,
  });
  return before;
}

const newest = (versions: readonly string[]): string => versions.reduce((a, b) => (a > b ? a : b), '');
