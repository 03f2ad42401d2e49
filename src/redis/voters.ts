/** The voters of a service: one per configured node, or the embedded one. */
import type { Clock, Events } from '../core/ports.ts';
import { MemoryLink, type Link } from './link.ts';
import { RedisLink, type RedisNode } from './redis-link.ts';
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
}

export interface NamedLink {
  /** Label of the node in metrics and logs. */
  readonly name: string;
  readonly link: Link;
}

export interface RedisNodes {
  readonly nodes: readonly (Omit<RedisNode, 'prefix' | 'timeoutMs'> & { readonly name: string })[];
  readonly prefix: string;
  readonly timeoutMs: number;
}

export const redisLinks = ({ nodes, prefix, timeoutMs }: RedisNodes): NamedLink[] =>
  nodes.map(({ name, ...node }) => ({ name, link: new RedisLink({ ...node, prefix, timeoutMs }) }));

/** One voter in this process: for one gateway, for trials. Its claims are gone with the process. */
export const embeddedLink = (clock: Clock): NamedLink[] => [{ name: 'embedded', link: new MemoryLink(() => clock.now()) }];

/**
 * First installation: every voter was empty when it was first met. With `trust` they count at once, and
 * only then: a voter that restarted empty beside others that did not is a voter that forgot.
 */
export function createVoters(links: readonly NamedLink[], options: VotersOptions, clock: Clock, events: Events): Voter[] {
  const { timeoutMs, lifeMs, nonce } = options;
  const greeted = (): void => {
    if (options.firstStart !== 'trust' || voters.length < links.length) return;
    if (voters.every((voter) => voter.hold === 'empty')) for (const voter of voters) void voter.trust();
  };
  const voters: Voter[] = [];
  for (const { name, link } of links) {
    voters.push(new Voter(link, { name, timeoutMs, lifeMs, lanes: 'one', nonce, greeted }, clock, events));
  }
  return voters;
}
