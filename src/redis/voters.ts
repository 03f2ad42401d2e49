/** The voters of a service: one per configured node, or the embedded one. */
import type { Clock, Events } from '../core/ports.ts';
import { quorumOf } from './decide.ts';
import { Health } from './health.ts';
import { MemoryLink, type Link } from './link.ts';
import { reportStrangers, type Membership } from './membership.ts';
import { ClusterLink } from './cluster-link.ts';
import { RedisLink, type RedisNode } from './redis-link.ts';
import type { ClusterAddress } from './slots.ts';
import { Voter } from './voter.ts';

export interface VotersOptions {
  /** Deadline of one command on one voter. */
  readonly timeoutMs: number;
  /** The longest life a lock can be given: max(lockTtl, unknownHold). */
  readonly lifeMs: number;
  /** Count voters that have no key at all at once, instead of waiting out the longest lock. */
  readonly firstStart: 'wait' | 'trust';
  /** A fresh random word at every call. */
  readonly nonce: () => string;
  /** Told to the voters; without it nobody is told that this gateway is here. */
  readonly membership?: Membership;
}

export interface NamedLink {
  /** Label of the node in metrics and logs. */
  readonly name: string;
  readonly link: Link;
  /** `one` unless said. */
  readonly lanes?: 'one' | 'sixteen';
}

export interface RedisNodes {
  /** `cluster`: members of a Redis Cluster, which is one voter; undefined: the server at `host` and `port`. */
  readonly nodes: readonly (Omit<RedisNode, 'prefix' | 'timeoutMs'> & {
    readonly name: string;
    readonly cluster?: readonly ClusterAddress[] | undefined;
  })[];
  /** The voters until now, while they change; those that stay are in both. */
  readonly previous?: RedisNodes['nodes'];
  readonly prefix: string;
  readonly timeoutMs: number;
}

/** Those of `nodes`, then those of `previous` that do not stay. */
export const redisLinks = ({ nodes, previous = [], prefix, timeoutMs }: RedisNodes, clock: Clock): NamedLink[] =>
  [...nodes, ...previous.filter(({ name }) => nodes.every((node) => node.name !== name))].map(
    ({ name, cluster: seeds, ...node }) => {
      const settings = { ...node, prefix, timeoutMs };
      if (seeds === undefined) return { name, link: new RedisLink(settings) };
      return { name, link: new ClusterLink({ ...settings, seeds }, clock), lanes: 'sixteen' };
    },
  );

/** One voter in this process: for one gateway, for trials. Its claims are gone with the process. */
export const embeddedLink = (clock: Clock): NamedLink[] => [
  { name: 'embedded', link: new MemoryLink(() => clock.now()) },
];

/** A node that has not answered by then is taken for one that is down. */
const MEET_MS = 2500;

/**
 * First installation: every voter was empty when it was first met. With `trust` they count at once, and
 * only then: voters that are all empty after one of them was whole have forgotten, and a voter that restarted empty beside others that did not is a voter that forgot. So nothing is
 * taken from memory: a second `hello` must find each of them still empty, and not started anew since the first.
 * A node that cannot be reached does not hold up the others, when they are a majority: if it did know events,
 * a majority had forgotten them.
 */
export function createVoters(
  links: readonly NamedLink[],
  options: VotersOptions,
  clock: Clock,
  events: Events,
): Voter[] {
  const { timeoutMs, lifeMs, nonce, membership } = options;
  const presence = membership && { service: membership.service, own: membership.own };
  const report = membership && reportStrangers(membership, events);
  const startedMs = clock.now();
  const met = new Set<Voter>();
  let asking = false;
  const trustIfEmpty = async (): Promise<void> => {
    if (asking || voters.length < links.length) return;
    for (const voter of voters) if (voter.eligible) met.add(voter);
    if (voters.some((voter) => voter.wasWhole)) return;
    const empty = voters.filter((voter) => met.has(voter) && voter.hold === 'empty');
    const enough = clock.now() - startedMs < MEET_MS ? links.length : quorumOf(links.length);
    if (empty.length < met.size || empty.length < enough) return;
    asking = true;
    const boots = empty.map((voter) => voter.boot);
    const answered = await Promise.all(empty.map((voter) => voter.greet()));
    asking = false;
    const still = empty.every(
      (voter, index) => answered[index] && voter.hold === 'empty' && voter.boot === boots[index],
    );
    if (still) for (const voter of empty) void voter.trust();
  };
  const voters: Voter[] = [];
  const health = new Health(voters, clock, events);
  const greeted = (voter: Voter): void => {
    health.met(voter);
    report?.(voter);
    void health.look(voter);
    if (options.firstStart === 'trust') void trustIfEmpty();
  };
  for (const { name, link, lanes = 'one' } of links) {
    voters.push(new Voter(link, { name, timeoutMs, lifeMs, lanes, nonce, presence, greeted }, clock, events));
  }
  if (options.firstStart === 'trust') clock.timer(MEET_MS, () => void trustIfEmpty());
  return voters;
}
