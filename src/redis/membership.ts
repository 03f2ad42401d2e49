/**
 * Which voters a gateway knows, and how gateways that know others are found out (protocol section 7).
 *
 * A gateway that knows one list says so on every voter that it greets, for a few probes at a time. So one that knows
 * two can tell whether anybody still writes to the old list alone, and what it must not believe the new one to know.
 */
import { createHash } from 'node:crypto';
import type { Events } from '../core/ports.ts';
import type { VoterList } from './decide.ts';
import type { Voter } from './voter.ts';

export interface Membership {
  /** The digest of the service, which shares its voters with no other in this. */
  readonly service: string;
  /** The places of the voters that decide; undefined while there is one list, of all. */
  readonly lists: readonly VoterList[] | undefined;
  /** The digest of the one list; empty while there are two. */
  readonly own: string;
  /** Digests of the lists: the present one, and the one until now if there is one. */
  readonly nodes: string;
  readonly previous: string | undefined;
}

/** The voters are those of `nodes`, then those of `previous` that do not stay. */
export function membershipOf(name: string, nodes: readonly string[], previous: readonly string[]): Membership {
  const service = digestOf([name]);
  const digest = digestOf(nodes);
  if (previous.length === 0) return { service, lists: undefined, own: digest, nodes: digest, previous: undefined };
  const all = [...new Set([...nodes, ...previous])];
  const placesOf = (names: readonly string[]): number[] => names.map((name) => all.indexOf(name));
  const lists = [
    { places: placesOf(nodes), young: true },
    { places: placesOf(previous), young: false },
  ];
  return { service, lists, own: '', nodes: digest, previous: digestOf(previous) };
}

/** The order in which they are written makes no other list. */
const digestOf = (names: readonly string[]): string =>
  createHash('sha256').update(names.toSorted().join('\n')).digest('base64url').slice(0, 12);

/** Tells of gateways that know neither of our lists: their majorities and ours need not meet. */
export function reportStrangers({ nodes, previous }: Membership, events: Events): (voter: Voter) => void {
  const told = new Set<string>();
  return ({ name: node, others }) => {
    if (others === undefined || others === '' || others === nodes || others === previous) return;
    events.membershipConflict(node);
    if (told.has(others)) return;
    told.add(others);
    events.warn(
      'another gateway of this service uses the voter with other redis.nodes: without redis.previous, both may forward one event',
      { node },
    );
  };
}
